/*
 * libxplat_lightweight: what MRNet's tools link by that name; the layer itself needs none of it.
 */
#include "xplat_lightweight/Types.h"

const char *xplat_lightweight_version(void)
{
    return "5.0.1";
}
