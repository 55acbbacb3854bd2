// SPDX-License-Identifier: BSD-3-Clause
// main() for tests that need EAL: it starts once per process, without devices or files.
#include "pages.hpp"

#include <cstdio>

#include <gtest/gtest.h>

#include <rte_eal.h>

#include <sched.h>

constexpr unsigned eal_megabytes = 256;

int main(int argc, char **argv)
{
    testing::InitGoogleTest(&argc, argv);
    // Listing the cases must not need a working EAL.
    if (testing::GTEST_FLAG(list_tests))
        return RUN_ALL_TESTS();
    std::vector<std::string> arguments =
        test::eal_arguments("test", test::huge_pages_granted(), eal_megabytes);
    // Engines of tests copy by virtual addresses.
    arguments.push_back("--iova-mode=va");
    std::vector<char *> pointers;
    for (std::string &argument : arguments)
        pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    // EAL ties this thread, and all that it starts, to one core; the tests want them all.
    cpu_set_t cores;
    sched_getaffinity(0, sizeof(cores), &cores);
    if (rte_eal_init(static_cast<int>(arguments.size()), pointers.data()) < 0) {
        std::fprintf(stderr, "EAL did not start\n");
        return 2;
    }
    sched_setaffinity(0, sizeof(cores), &cores);
    const int result = RUN_ALL_TESTS();
    rte_eal_cleanup();
    return result;
}
