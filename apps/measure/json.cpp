// SPDX-License-Identifier: BSD-3-Clause
#include "json.hpp"

#include <cmath>
#include <cstdio>

namespace app
{

namespace
{

/// Bytes of the UTF-8 character at the start of @p text, 0 where there is none.
size_t utf8_bytes(std::string_view text)
{
    const auto first = static_cast<unsigned char>(text[0]);
    const size_t bytes = first < 0x80                    ? 1
                         : first >= 0xc2 && first < 0xe0 ? 2
                         : first >= 0xe0 && first < 0xf0 ? 3
                         : first >= 0xf0 && first < 0xf5 ? 4
                                                         : 0;
    if (bytes > text.size())
        return 0;
    for (size_t i = 1; i < bytes; ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80)
            return 0;
    }
    // Longer than needed, halves of pairs, and beyond the last code point.
    const auto second = static_cast<unsigned char>(bytes > 2 ? text[1] : '\xff');
    const bool refused = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                         (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
    return refused ? 0 : bytes;
}

} // namespace

std::string json_quoted(std::string_view text)
{
    std::string out = "\"";
    while (!text.empty()) {
        const size_t bytes = utf8_bytes(text);
        const char c = text[0];
        if (bytes == 0) {
            out += "\\ufffd";
        } else if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (bytes == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) {
            char escaped[8];
            std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(c));
            out += escaped;
        } else {
            out += text.substr(0, bytes);
        }
        text.remove_prefix(bytes == 0 ? 1 : bytes);
    }
    return out + '"';
}

void JsonText::separate()
{
    if (after_key_) {
        after_key_ = false;
        return;
    }
    if (!first_)
        text_ += ',';
    if (depth_ != 0)
        new_line();
    first_ = false;
}

void JsonText::new_line()
{
    if (!lines_)
        return;
    text_ += '\n';
    text_.append(size_t{2} * depth_, ' ');
}

void JsonText::put(std::string_view token)
{
    separate();
    text_ += token;
}

void JsonText::key(std::string_view name)
{
    put(json_quoted(name));
    text_ += ": ";
    after_key_ = true;
}

void JsonText::open(char bracket)
{
    put(std::string_view(&bracket, 1));
    ++depth_;
    first_ = true;
}

void JsonText::close(char bracket)
{
    --depth_;
    if (!first_)
        new_line();
    text_ += bracket;
    if (depth_ == 0)
        text_ += '\n';
    first_ = false;
}

void JsonText::value(double number)
{
    if (!std::isfinite(number))
        return null();
    char text[32];
    std::snprintf(text, sizeof(text), "%.10g", number);
    put(text);
}

void JsonText::row(std::initializer_list<double> numbers)
{
    std::string line;
    for (const double number : numbers) {
        char text[32];
        std::snprintf(text, sizeof(text), "%s%.10g", line.empty() ? "[" : ", ", number);
        line += text;
    }
    put(line + ']');
}

} // namespace app
