// SPDX-License-Identifier: BSD-3-Clause
#include "prompt/grammar.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include <cmdline.h>
#include <cmdline_parse_string.h>

namespace echo
{

namespace
{

constexpr size_t most_words = 4;
constexpr size_t help_column = 34;

bool takes_rest(const std::string &word)
{
    return word.ends_with("...");
}

bool takes_any(const std::string &word)
{
    return word[0] >= 'A' && word[0] <= 'Z';
}

/// A word of the syntax as the library has it: NULL any word, "" the rest of the line, else choices
/// with '#' between them.
const char *choices_of(std::string &word)
{
    if (takes_rest(word))
        return TOKEN_STRING_MULTI;
    if (takes_any(word))
        return nullptr;
    for (char &c : word)
        c = c == '|' ? '#' : c;
    return word.c_str();
}

} // namespace

/// What the library parses a command into: words of bounded length, and the rest of the line.
struct Grammar::Parsed {
    cmdline_fixed_string_t words[most_words];
    cmdline_multi_string_t rest;
};
static_assert(std::is_standard_layout_v<cmdline_token_string>);

/// A command and what the library wants to have of it. `inst` ends in an array without a length.
struct Grammar::Entry {
    Grammar *grammar;
    Command command;
    std::vector<std::string> words;
    std::array<cmdline_token_string, most_words> tokens;
    cmdline_parse_inst_t *inst;

    Entry(Grammar *owner, Command &&c);
    ~Entry() { std::free(inst); }
    Entry(const Entry &) = delete;
    Entry &operator=(const Entry &) = delete;
};

Grammar::Entry::Entry(Grammar *owner, Command &&c) : grammar(owner), command(std::move(c)), tokens{}
{
    std::istringstream syntax(command.syntax);
    for (std::string word; syntax >> word && words.size() < most_words;)
        words.push_back(word);
    const size_t bytes = sizeof(*inst) + (words.size() + 1) * sizeof(inst->tokens[0]);
    inst = static_cast<cmdline_parse_inst_t *>(std::calloc(1, bytes));
    if (inst == nullptr)
        std::abort();
    inst->f = dispatch;
    inst->data = this;
    inst->help_str = command.help.c_str();
    for (size_t i = 0; i < words.size(); ++i) {
        const size_t at = takes_rest(words[i])
                              ? offsetof(Parsed, rest)
                              : offsetof(Parsed, words) + i * sizeof(cmdline_fixed_string_t);
        const char *choices = choices_of(words[i]);
        tokens[i] = {{&cmdline_token_string_ops, static_cast<unsigned>(at)}, {choices}};
        inst->tokens[i] = &tokens[i].hdr;
    }
}

Grammar::Grammar(std::vector<Command> commands)
{
    commands.push_back({"help", "this list; ? shows what can follow", [this](const Words &) {
                            std::fputs(help().c_str(), stdout);
                            return std::string();
                        }});
    for (Command &command : commands) {
        entries_.push_back(std::make_unique<Entry>(this, std::move(command)));
        context_.push_back(entries_.back()->inst);
    }
    context_.push_back(nullptr);
    silent_ = cmdline_new(context_.data(), "", -1, -1);
}

Grammar::~Grammar()
{
    cmdline_free(silent_);
}

void Grammar::dispatch(void *parsed, struct cmdline *, void *data)
{
    const auto &result = *static_cast<const Parsed *>(parsed);
    Entry &entry = *static_cast<Entry *>(data);
    Words words;
    for (size_t i = 0; i < entry.words.size(); ++i)
        words.emplace_back(entry.tokens[i].string_data.str == nullptr ||
                                   entry.tokens[i].string_data.str[0] != '\0'
                               ? result.words[i]
                               : result.rest);
    while (!words.back().empty() && words.back().back() == ' ')
        words.back().pop_back();
    std::string error = entry.command.run(words);
    std::fflush(stdout);
    if (entry.grammar->batch_)
        entry.grammar->error_ = std::move(error);
    else if (!error.empty())
        std::fprintf(stderr, "%s\n", error.c_str());
}

std::string Grammar::run(const std::string &line)
{
    if (line.find('\0') != std::string::npos || line.size() >= STR_MULTI_TOKEN_SIZE)
        return "this is no line of text, or too long a one";
    error_.clear();
    batch_ = true;
    const int rc = cmdline_parse(silent_, (line + "\n").c_str());
    batch_ = false;
    switch (rc) {
    case CMDLINE_PARSE_NOMATCH:
        return "there is no such command: " + line;
    case CMDLINE_PARSE_AMBIGUOUS:
        return "ambiguous: " + line;
    case CMDLINE_PARSE_BAD_ARGS:
        return "a word is wrong, or one is missing: " + line;
    default:
        return error_;
    }
}

std::string Grammar::help() const
{
    std::string text;
    for (const auto &entry : entries_) {
        std::string left = "  " + entry->command.syntax;
        // A long one has a line of its own.
        if (left.size() + 2 > help_column)
            left += "\n" + std::string(help_column, ' ');
        else
            left.resize(help_column, ' ');
        text += left + entry->command.help + "\n";
    }
    return text;
}

} // namespace echo
