/*
 * The words of a text as a shell takes them.
 */
#ifndef XPLAT_WORDS_HPP
#define XPLAT_WORDS_HPP

#include <string>
#include <vector>

namespace XPlat {

/* Separated by blanks, but not by those in quotes or behind a backslash. */
std::vector<std::string> words_of(const std::string& text);

}  // namespace XPlat

#endif
