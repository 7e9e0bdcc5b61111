/*
 * xplat/PathUtils.h by itself.
 */
#include "xplat/PathUtils.h"

#include "../check.h"

int main()
{
    using namespace XPlat::PathUtils;
    const char* rows[][3] = {{"/usr/lib/libm.so", "libm.so", "/usr/lib"}, {"/usr/", "usr", "/"},
                             {"file", "file", "."},  {"/", "/", "/"},     {"a/b//", "b", "a"},
                             {"//", "/", "/"},       {"", "", "."},       {"a//b", "b", "a"}};
    for (auto& row : rows) {
        DEMAND(strcmp(GetFilename(row[0]).c_str(), row[1]) == 0);
        DEMAND(strcmp(GetDirname(row[0]).c_str(), row[2]) == 0);
    }
    return 0;
}
