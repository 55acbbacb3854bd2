// SPDX-License-Identifier: BSD-3-Clause
#include "output.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace
{

/// In a process of its own: standard output goes to @p fd. Ends with finish_output().
[[noreturn]] void print_to(int fd, const std::function<void()> &print)
{
    if (dup2(fd, STDOUT_FILENO) < 0)
        std::_Exit(99);
    print();
    std::_Exit(app::finish_output("prog", 0));
}

constexpr rlim_t most_bytes = 4096; // room for the line on standard error, which may be a file, too

void limit_files()
{
    const rlimit limit = {most_bytes, most_bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
}

int open_full()
{
    return open("/dev/full", O_WRONLY);
}

TEST(Output, AFullDiskIsAStatusAndALine)
{
    EXPECT_EXIT(print_to(open_full(), [] { std::puts("a table"); }), testing::ExitedWithCode(1),
                "^prog: standard output: No space left on device\n$");
}

TEST(Output, WhatWasLostOnTheWayIsNotForgotten)
{
    EXPECT_EXIT(print_to(open_full(),
                         [] {
                             std::puts("a table");
                             std::fflush(stdout);
                         }),
                testing::ExitedWithCode(1),
                "^prog: standard output: some of it could not be written\n$");
}

TEST(Output, AStatusThatIsAlreadyWrongStays)
{
    EXPECT_EXIT(
        {
            dup2(open_full(), STDOUT_FILENO);
            std::puts("a table");
            std::_Exit(app::finish_output("prog", 2));
        },
        testing::ExitedWithCode(2), "standard output");
}

TEST(Output, WhatArrivesIsSuccess)
{
    EXPECT_EXIT(print_to(open("/dev/null", O_WRONLY), [] { std::puts("a table"); }),
                testing::ExitedWithCode(0), "^$");
}

TEST(Output, AReaderThatHasLeftIsNoError)
{
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    close(ends[0]);
    EXPECT_EXIT(print_to(ends[1],
                         [] {
                             std::signal(SIGPIPE, SIG_IGN);
                             std::puts("a table");
                         }),
                testing::ExitedWithCode(0), "^$");
    close(ends[1]);
}

TEST(Output, AFileBeyondTheLimitIsAnErrorOfTheWrite)
{
    std::FILE *file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    EXPECT_EXIT(
        {
            app::survive_file_limit();
            limit_files();
            print_to(fileno(file), [] { std::puts(std::string(2 * most_bytes, '-').c_str()); });
        },
        testing::ExitedWithCode(1), "^prog: standard output: ");
    std::fclose(file);
}

} // namespace
