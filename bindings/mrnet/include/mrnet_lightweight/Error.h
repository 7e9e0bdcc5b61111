/*
 * What can be wrong: Shared.h has it for both languages.
 */
#ifndef MRNET_LIGHTWEIGHT_ERROR_H
#define MRNET_LIGHTWEIGHT_ERROR_H

#include "mrnet_lightweight/Types.h"

#endif
