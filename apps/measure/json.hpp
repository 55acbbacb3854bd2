// SPDX-License-Identifier: BSD-3-Clause
// JSON as it is written: values one after the other, commas and layout by themselves.
#ifndef APP_JSON_HPP
#define APP_JSON_HPP

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace app
{

/// The text as a JSON string. Bytes that are no UTF-8 become U+FFFD.
std::string json_quoted(std::string_view text);

/// Builds one JSON text. Inside an object every value comes after its key().
class JsonText
{
public:
    enum class Layout { lines, one_line };

    explicit JsonText(Layout layout = Layout::lines) : lines_(layout == Layout::lines) {}

    void begin_object() { open('{'); }
    void end_object() { close('}'); }
    void begin_array() { open('['); }
    void end_array() { close(']'); }
    void key(std::string_view name);

    void value(std::string_view text) { put(json_quoted(text)); }
    void value(const char *text) { value(std::string_view(text)); }
    void value(bool flag) { put(flag ? "true" : "false"); }
    void value(std::unsigned_integral auto number) { put(std::to_string(number)); }
    void value(double number); ///< null when it is not finite
    void null() { put("null"); }

    template <typename Value>
    void member(std::string_view name, const Value &content)
    {
        key(name);
        value(content);
    }

    /// A list of numbers on one line.
    void row(std::initializer_list<double> numbers);

    const std::string &text() const { return text_; }

private:
    void open(char bracket);
    void close(char bracket);
    void put(std::string_view token);
    void separate();
    void new_line();

    const bool lines_;
    std::string text_;
    unsigned depth_ = 0;
    bool first_ = true;      ///< nothing is in the innermost bracket yet
    bool after_key_ = false; ///< the next value belongs to the key that was written
};

} // namespace app

#endif
