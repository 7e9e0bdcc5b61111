/*
 * The words of a text, one after another.
 */
#ifndef XPLAT_TOKENIZER_H
#define XPLAT_TOKENIZER_H

#include <string>

namespace XPlat {

class Tokenizer {
  public:
    /* The text has to be there as long as the tokenizer. */
    Tokenizer(const std::string& text);

    void Reset();
    /* Where the next word begins, and its length; npos when there is none. Words are separated by
       any of the characters. */
    std::string::size_type GetNextToken(std::string::size_type& length,
                                        const char* separators = " \t");

  private:
    const std::string& text_;
    std::string::size_type at_;
};

}  // namespace XPlat

#endif
