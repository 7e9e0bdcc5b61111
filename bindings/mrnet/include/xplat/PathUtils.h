/*
 * Parts of paths, as basename(1) and dirname(1) give them.
 */
#ifndef XPLAT_PATHUTILS_H
#define XPLAT_PATHUTILS_H

#include <cstring>
#include <string>

namespace XPlat {
namespace PathUtils {

std::string GetFilename(const std::string& path);
std::string GetDirname(const std::string& path);

}  // namespace PathUtils
}  // namespace XPlat

#endif
