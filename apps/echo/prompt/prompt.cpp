// SPDX-License-Identifier: BSD-3-Clause
#include "prompt/prompt.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cmdline.h>
#include <cmdline_socket.h>

#include "signals.hpp"

namespace echo
{

namespace
{

constexpr int tick_ms = 20;
constexpr size_t longest_line = 8192;

bool over(const Console &console)
{
    return console.quit || app::stop_signal() != 0;
}

/// Waits for input, looking after everything else meanwhile. @return false: the program is to end
bool await_input(const Console &console, int fd)
{
    pollfd ready = {fd, POLLIN, 0};
    for (;;) {
        console.tick();
        if (over(console))
            return false;
        if (poll(&ready, 1, tick_ms) > 0)
            return true;
    }
}

/// Text cut into lines, with their numbers.
class Lines
{
public:
    void add(const char *text, size_t bytes) { text_.append(text, bytes); }

    /// @param at_end  what is left is a line as well. @return false: no line is there yet
    bool next(std::string &line, bool at_end)
    {
        size_t end = text_.find('\n');
        if (end == std::string::npos && (!at_end || text_.empty()))
            return false;
        end = std::min(end, text_.size());
        line = text_.substr(0, end);
        text_.erase(0, end + 1);
        ++number_;
        return true;
    }
    bool too_long() const { return text_.size() > longest_line; }
    size_t number() const { return number_; }

private:
    std::string text_;
    size_t number_ = 0;
};

/// Runs the lines that are there. @return empty, or what is wrong with the last one
std::string run_whole_lines(const Console &console, Lines &lines, bool at_end)
{
    std::string line;
    while (!over(console) && lines.next(line, at_end)) {
        std::string error = console.grammar.run(line);
        if (!error.empty())
            return error;
        console.tick();
    }
    return lines.too_long() ? "the next line is too long" : std::string();
}

} // namespace

void run_terminal(const Console &console)
{
    cmdline *terminal = cmdline_stdin_new(console.grammar.context(), "echo> ");
    if (terminal == nullptr)
        return;
    char c = 0;
    while (await_input(console, STDIN_FILENO)) {
        if (read(STDIN_FILENO, &c, 1) != 1 || cmdline_in(terminal, &c, 1) < 0)
            break;
    }
    cmdline_stdin_exit(terminal);
}

std::string run_lines(const Console &console, int fd, const std::string &name)
{
    Lines lines;
    std::array<char, 4096> piece;
    for (bool at_end = false; !at_end && await_input(console, fd);) {
        const ssize_t got = read(fd, piece.data(), piece.size());
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return name + ": " + std::strerror(errno);
        at_end = got == 0;
        lines.add(piece.data(), static_cast<size_t>(got));
        const std::string error = run_whole_lines(console, lines, at_end);
        if (!error.empty())
            return name + ":" + std::to_string(lines.number()) + ": " + error;
    }
    return {};
}

std::string run_file(const Console &console, const std::string &path)
{
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return path + ": " + std::strerror(errno);
    std::string error = run_lines(console, fd, path);
    close(fd);
    return error;
}

} // namespace echo
