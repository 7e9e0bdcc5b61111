/*
 * System errors, and lines for a reader that looks for a fault.
 */
#include <cerrno>

#include "../../lightweight/xplat/lines.h"
#include "xplat/Error.h"
#include "xplat/xplat_utils.h"

namespace XPlat {

std::string Error::GetErrorString(int code)
{
    char place[128];
    return strerror_r(code, place, sizeof place);
}

bool Error::ETimedOut(int code)
{
    return code == ETIMEDOUT;
}

bool Error::EAddrInUse(int code)
{
    return code == EADDRINUSE;
}

bool Error::EConnRefused(int code)
{
    return code == ECONNREFUSED;
}

bool Error::EInProgress(int code)
{
    return code == EINPROGRESS;
}

bool Error::EInterrupted(int code)
{
    return code == EINTR;
}

int CUR_DEBUG_LEVEL = 0;

namespace {

FILE* output = NULL;

}  // namespace

void set_DebugLevel(int level)
{
    CUR_DEBUG_LEVEL = level < 0 ? 0 : level;
}

int get_DebugLevel()
{
    return CUR_DEBUG_LEVEL;
}

void xplat_printf_init(FILE* file)
{
    output = file;
}

int xplat_printf(const char* file, int line, const char* function, FILE* to, const char* format, ...)
{
    const mrn_place place = {file, line, function, XPlat_TLSKey->GetName()};
    va_list values;
    va_start(values, format);
    int length = mrn_line(output != NULL ? output : to != NULL ? to : stderr, &place, format, values);
    va_end(values);
    return length;
}

}  // namespace XPlat
