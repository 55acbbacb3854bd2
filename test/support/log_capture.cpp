// SPDX-License-Identifier: BSD-3-Clause
#include "log_capture.hpp"

#include <cstdio>
#include <sstream>

#include <rte_log.h>

namespace test
{

namespace
{

/// One stream for the whole process: EAL's threads may be logging whenever it would be closed.
struct Journal {
    char *text = nullptr;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    Journal() { rte_openlog_stream(file); }
};

Journal &journal()
{
    static Journal one;
    return one;
}

} // namespace

LogCapture::LogCapture() : begin_(whole().size()) {}

std::string LogCapture::whole()
{
    const Journal &log = journal();
    flockfile(log.file); // who logs may move the text
    fflush_unlocked(log.file);
    std::string all(log.text, log.bytes);
    funlockfile(log.file);
    return all;
}

std::string LogCapture::text() const
{
    return whole().substr(begin_);
}

std::string LogCapture::driver() const
{
    std::istringstream all(text());
    std::string lines;
    for (std::string line; std::getline(all, line);)
        if (line.find("plx_ntb: ") != std::string::npos)
            lines += line + "\n";
    return lines;
}

} // namespace test
