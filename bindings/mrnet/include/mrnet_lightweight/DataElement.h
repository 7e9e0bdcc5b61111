/*
 * Types of values: Shared.h has them for both languages.
 */
#ifndef MRNET_LIGHTWEIGHT_DATAELEMENT_H
#define MRNET_LIGHTWEIGHT_DATAELEMENT_H

#include "mrnet_lightweight/Types.h"

#endif
