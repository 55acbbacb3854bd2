// SPDX-License-Identifier: BSD-3-Clause
// Which thread keeps a control thread from its CPU.
#include "sync/starving.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

using plx::pmd::describe;
using plx::pmd::ScheduledThread;
using plx::pmd::Starved;
using plx::pmd::starved;

namespace
{

ScheduledThread thread(int priority, std::initializer_list<int> cpus, const char *name = "a")
{
    ScheduledThread made;
    made.id = 77;
    made.priority = priority;
    CPU_ZERO(&made.cpus);
    for (const int cpu : cpus)
        CPU_SET(cpu, &made.cpus);
    std::snprintf(made.name, sizeof(made.name), "%s", name);
    return made;
}

std::string words(bool raised)
{
    const ScheduledThread poller = thread(5, {3}, "lcore-worker-3");
    char text[320];
    describe({&poller, 3}, raised, text, sizeof(text));
    return text;
}

} // namespace

TEST(Starving, APollerWithRealTimePriorityOnItsOnlyCpu)
{
    const std::vector<ScheduledThread> others = {thread(0, {1}), thread(5, {3}, "poller")};
    const Starved found = starved(thread(0, {3}), others);
    ASSERT_NE(found.by, nullptr);
    EXPECT_STREQ(found.by->name, "poller");
    EXPECT_EQ(found.cpu, 3);
}

TEST(Starving, ACpuOfItsOwnIsEnough)
{
    EXPECT_EQ(starved(thread(0, {2, 3}), std::vector{thread(5, {3})}).by, nullptr);
    EXPECT_EQ(starved(thread(0, {3}), std::vector{thread(5, {2})}).by, nullptr);
    EXPECT_EQ(starved(thread(0, {3}), {}).by, nullptr);
}

TEST(Starving, WhoMayGoElsewhereOrHasNoPriorityLetsItRun)
{
    EXPECT_EQ(starved(thread(0, {3}), std::vector{thread(5, {2, 3}), thread(0, {3})}).by, nullptr);
}

TEST(Starving, AServiceThreadThatInheritedThePriorityDoesNotPoll)
{
    for (const char *name : {"eal-intr-thread", "rte_mp_handle", "telemetry-v2", "dpdk-intr",
                             "dpdk-mp-msg", "dpdk-telemetry-", "plx-ctrl-1"}) {
        const std::vector<ScheduledThread> alone = {thread(5, {3}, name)};
        EXPECT_EQ(starved(thread(5, {3}), alone).by, nullptr) << name;
        const std::vector<ScheduledThread> two = {thread(9, {3}, name), thread(5, {3}, "lcore")};
        const Starved found = starved(thread(5, {3}), two);
        ASSERT_NE(found.by, nullptr);
        EXPECT_STREQ(found.by->name, "lcore");
    }
}

TEST(Starving, AHigherPriorityRunsAndAnEqualOneDoesNot)
{
    EXPECT_EQ(starved(thread(6, {3}), std::vector{thread(5, {3})}).by, nullptr);
    EXPECT_NE(starved(thread(5, {3}), std::vector{thread(5, {3})}).by, nullptr);
}

TEST(Starving, TheLeastPriorityThatHasToBeExceededIsNamed)
{
    const std::vector<ScheduledThread> others = {thread(9, {1}), thread(2, {2}), thread(4, {2})};
    const Starved found = starved(thread(0, {1, 2}), others);
    ASSERT_NE(found.by, nullptr);
    EXPECT_EQ(found.by->priority, 4) << "of the CPU's highest, the lowest";
    EXPECT_EQ(found.cpu, 2);
}

TEST(Starving, TheLineNamesThreadCpuAndWhatToDo)
{
    for (const bool raised : {false, true}) {
        const std::string text = words(raised);
        EXPECT_NE(text.find("lcore-worker-3 (77)"), std::string::npos) << text;
        EXPECT_NE(text.find("CPU 3"), std::string::npos) << text;
        EXPECT_NE(text.find("priority 6"), std::string::npos) << text;
        EXPECT_EQ(text.find("taskset") == std::string::npos, raised) << text;
        EXPECT_EQ(text.find('\n'), std::string::npos);
    }
}
