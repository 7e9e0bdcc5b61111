/*
 * xplat/Error.h by itself.
 */
#include "xplat/Error.h"

#include <cerrno>

#include "../check.h"

int main()
{
    using namespace XPlat::Error;
    std::string text = GetErrorString(ENOENT);
    DEMAND(strstr(text.c_str(), "No such file") != NULL);
    DEMAND(ETimedOut(ETIMEDOUT) && !ETimedOut(0));
    DEMAND(EAddrInUse(EADDRINUSE) && !EAddrInUse(0));
    DEMAND(EConnRefused(ECONNREFUSED) && !EConnRefused(0));
    DEMAND(EInProgress(EINPROGRESS) && !EInProgress(0));
    DEMAND(EInterrupted(EINTR) && !EInterrupted(0));
    return 0;
}
