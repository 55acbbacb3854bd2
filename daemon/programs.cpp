// SPDX-License-Identifier: BSD-3-Clause
#include "programs.hpp"

#include "preload/figures.hpp"
#include "printable.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ntbd
{

namespace
{

namespace fs = std::filesystem;
using ntb::socket::preload::Figures;

// Whoever may be looked into may also end meanwhile, so every step may fail.
std::vector<fs::path> entries_of(const fs::path &folder)
{
    std::vector<fs::path> found;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
        found.push_back(at->path());
    return found;
}

std::optional<int> number(const std::string &text)
{
    int value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && rest == text.data() + text.size() ? std::optional(value)
                                                                     : std::nullopt;
}

struct Page {
    std::pair<dev_t, ino_t> file;
    std::unique_ptr<Figures> figures;
};

std::optional<Page> page_at(const fs::path &descriptor)
{
    std::error_code error;
    const std::string expected = std::string("/memfd:") + Figures::name;
    if (!fs::read_symlink(descriptor, error).string().starts_with(expected) || error)
        return std::nullopt;
    const int fd = open(descriptor.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return std::nullopt;
    Page page{{}, std::make_unique<Figures>()};
    struct stat status = {};
    const bool is_whole = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                          pread(fd, static_cast<void *>(page.figures.get()), sizeof(Figures), 0) ==
                              static_cast<ssize_t>(sizeof(Figures));
    close(fd);
    if (!is_whole || page.figures->magic != Figures::right_magic ||
        page.figures->version != Figures::right_version)
        return std::nullopt;
    page.file = {status.st_dev, status.st_ino};
    return page;
}

Program program_of(int pid, const Figures &figures)
{
    Program program{pid,
                    printable({figures.program, strnlen(figures.program, sizeof(figures.program))}),
                    figures.matched,
                    {}};
    for (size_t i = 0; i < ntb::socket::preload::reason_count; i++)
        if (const uint64_t times = figures.reasons[i]; times != 0)
            program.reasons.push_back({times, ntb::socket::preload::reason_texts[i]});
    return program;
}

} // namespace

std::vector<Program> find_programs(const std::string &proc)
{
    std::vector<std::pair<int, fs::path>> processes;
    for (const fs::path &path : entries_of(proc))
        if (const std::optional<int> pid = number(path.filename().string()))
            processes.emplace_back(*pid, path);
    std::sort(processes.begin(), processes.end());
    std::vector<Program> programs;
    std::map<std::pair<dev_t, ino_t>, size_t> seen;
    for (const auto &[pid, path] : processes)
        for (const fs::path &descriptor : entries_of(path / "fd")) {
            const std::optional<Page> page = page_at(descriptor);
            if (!page)
                continue;
            const auto [at, is_new] = seen.emplace(page->file, programs.size());
            // Numbers of processes begin again at the highest one: a child may have a lower one.
            if (is_new)
                programs.push_back(program_of(pid, *page->figures));
            else if (page->figures->pid == pid)
                programs[at->second].pid = pid;
        }
    std::sort(programs.begin(), programs.end(),
              [](const Program &one, const Program &other) { return one.pid < other.pid; });
    return programs;
}

} // namespace ntbd
