/*
 * What is no socket and no port. Apart from the functions, so that a tool that has such names of its
 * own links the rest.
 */
#include "xplat_lightweight/SocketUtils.h"

const XPlat_Socket InvalidSocket = -1;
const XPlat_Port InvalidPort = (XPlat_Port)-1;
