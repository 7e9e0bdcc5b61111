/*
 * Numbers of system errors.
 */
#ifndef XPLAT_ERROR_H
#define XPLAT_ERROR_H

#include <cstring>
#include <string>

namespace XPlat {
namespace Error {

std::string GetErrorString(int code);
bool ETimedOut(int code);
bool EAddrInUse(int code);
bool EConnRefused(int code);
bool EInProgress(int code);
bool EInterrupted(int code);

}  // namespace Error
}  // namespace XPlat

#endif
