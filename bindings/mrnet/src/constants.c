/*
 * What is no port and no rank, for both languages. Apart from all else, so that a program may have the
 * archives of both.
 */
#include "mrnet_lightweight/Shared.h"

const Port UnknownPort = (Port)-1;
const Rank UnknownRank = (Rank)-1;
