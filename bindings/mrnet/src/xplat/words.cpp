/*
 * Parts of texts: words, and parts of paths.
 */
#include "words.hpp"

#include <cctype>

#include "xplat/PathUtils.h"
#include "xplat/Tokenizer.h"

namespace XPlat {

Tokenizer::Tokenizer(const std::string& text) : text_(text), at_(0) {}

void Tokenizer::Reset()
{
    at_ = 0;
}

std::string::size_type Tokenizer::GetNextToken(std::string::size_type& length,
                                               const char* separators)
{
    std::string::size_type start = text_.find_first_not_of(separators, at_);
    at_ = start == std::string::npos ? start : text_.find_first_of(separators, start);
    if (at_ == std::string::npos)
        at_ = text_.size();
    length = start == std::string::npos ? 0 : at_ - start;
    return start;
}

namespace {

/* A path without the slashes at its end, but for that of the root. */
std::string trimmed(const std::string& path)
{
    std::string::size_type last = path.find_last_not_of('/');
    return last == std::string::npos ? path.substr(0, 1) : path.substr(0, last + 1);
}

}  // namespace

std::string PathUtils::GetFilename(const std::string& path)
{
    std::string whole = trimmed(path);
    return whole == "/" ? whole : whole.substr(whole.rfind('/') + 1);
}

std::string PathUtils::GetDirname(const std::string& path)
{
    std::string whole = trimmed(path);
    std::string::size_type slash = whole.rfind('/');
    return slash == std::string::npos ? "." : trimmed(whole.substr(0, slash + 1));
}

std::vector<std::string> words_of(const std::string& text)
{
    std::vector<std::string> words;
    bool is_inside = false;
    char quote = '\0';
    for (size_t at = 0; at < text.size(); at++) {
        char letter = text[at];
        bool is_escape = letter == '\\' && quote != '\'' && at + 1 < text.size();
        if (quote == '\0' && !is_escape && isspace(static_cast<unsigned char>(letter))) {
            is_inside = false;
            continue;
        }
        if (!is_inside)
            words.emplace_back();
        is_inside = true;
        if (is_escape)
            words.back() += text[++at];
        else if (quote == '\0' && (letter == '"' || letter == '\''))
            quote = letter;
        else if (letter == quote)
            quote = '\0';
        else
            words.back() += letter;
    }
    return words;
}

}  // namespace XPlat
