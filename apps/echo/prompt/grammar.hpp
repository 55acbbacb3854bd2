// SPDX-License-Identifier: BSD-3-Clause
// A table of commands as a grammar of DPDK's command-line library, which gives completion, help and
// history.
#ifndef ECHO_PROMPT_GRAMMAR_HPP
#define ECHO_PROMPT_GRAMMAR_HPP

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <cmdline_parse.h>

namespace echo
{

/// The words of a command, those that its syntax names by capitals among them.
using Words = std::vector<std::string>;

struct Command {
    /// Words with single blanks between them. "a|b": one of these. "NAME": any word. "REST...":
    /// everything up to the end of the line.
    std::string syntax;
    std::string help;
    /// @return empty, or one line that says why it was not done
    std::function<std::string(const Words &)> run;
};

class Grammar
{
public:
    /// The commands and "help".
    explicit Grammar(std::vector<Command> commands);
    ~Grammar();
    Grammar(const Grammar &) = delete;
    Grammar &operator=(const Grammar &) = delete;

    /// For cmdline_new(): what a user types there ends in the commands, their errors on standard
    /// error.
    cmdline_parse_ctx_t *context() { return context_.data(); }

    /// Runs one line; an empty one, or a comment behind '#', does nothing.
    /// @return empty, or one line that says what is wrong
    std::string run(const std::string &line);

    /// One command a line.
    std::string help() const;

private:
    struct Entry;
    struct Parsed;
    static void dispatch(void *parsed, struct cmdline *, void *entry);

    std::vector<std::unique_ptr<Entry>> entries_;
    std::vector<cmdline_parse_inst_t *> context_; ///< NULL at its end
    struct cmdline *silent_ = nullptr;            ///< for lines that come from no terminal
    bool batch_ = false;                          ///< run() is at work: it gets the error
    std::string error_;
};

} // namespace echo

#endif
