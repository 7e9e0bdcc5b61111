/*
 * xplat_lightweight/Process.h by itself.
 */
#include "xplat_lightweight/Process.h"

#include <unistd.h>

#include "../check.h"

int main(void)
{
    DEMAND(Process_GetProcessId() == getpid());
    return 0;
}
