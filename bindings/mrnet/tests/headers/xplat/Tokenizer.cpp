/*
 * xplat/Tokenizer.h by itself.
 */
#include "xplat/Tokenizer.h"

#include "../check.h"

int main()
{
    std::string text = "  one two\tthree", fields = "%d,%s,,%lf", nothing = "", blanks = " \t ";
    std::string::size_type length = 9, at;
    XPlat::Tokenizer words(text);
    const char* wanted[] = {"one", "two", "three"};
    for (int round = 0; round < 2; round++) {
        for (const char* word : wanted) {
            at = words.GetNextToken(length);
            DEMAND(at != std::string::npos && text.substr(at, length) == word);
        }
        DEMAND(words.GetNextToken(length) == std::string::npos && length == 0);
        DEMAND(words.GetNextToken(length) == std::string::npos);
        words.Reset();
    }
    XPlat::Tokenizer directives(fields);
    DEMAND((at = directives.GetNextToken(length, "%,")) == 1 && length == 1);
    DEMAND((at = directives.GetNextToken(length, "%,")) == 4 && length == 1);
    DEMAND((at = directives.GetNextToken(length, "%,")) == 8 && length == 2);
    DEMAND(XPlat::Tokenizer(nothing).GetNextToken(length) == std::string::npos);
    DEMAND(XPlat::Tokenizer(blanks).GetNextToken(length) == std::string::npos);
    return 0;
}
