// SPDX-License-Identifier: BSD-3-Clause
// main() for tests that need EAL: it starts once per process, without hugepages, devices or files.
#include <cstdio>

#include <gtest/gtest.h>

#include <rte_eal.h>

#include <sched.h>

int main(int argc, char **argv)
{
    testing::InitGoogleTest(&argc, argv);
    // Listing the cases must not need a working EAL.
    if (testing::GTEST_FLAG(list_tests))
        return RUN_ALL_TESTS();
    char arguments[][20] = {"test",           "--no-huge", "--no-pci", "--no-shconf",
                            "--no-telemetry", "-m",        "256",      "--log-level=error"};
    constexpr int count = sizeof(arguments) / sizeof(arguments[0]);
    char *pointers[count + 1] = {};
    for (int i = 0; i < count; i++)
        pointers[i] = arguments[i];
    // EAL ties this thread, and all that it starts, to one core; the tests want them all.
    cpu_set_t cores;
    sched_getaffinity(0, sizeof(cores), &cores);
    if (rte_eal_init(count, pointers) < 0) {
        std::fprintf(stderr, "EAL did not start\n");
        return 2;
    }
    sched_setaffinity(0, sizeof(cores), &cores);
    const int result = RUN_ALL_TESTS();
    rte_eal_cleanup();
    return result;
}
