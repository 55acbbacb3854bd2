// SPDX-License-Identifier: BSD-3-Clause
#include "record/family.hpp"

#include <set>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ntb::socket;

namespace
{

TEST(Family, PlacesAreOfOneConnectionEach)
{
    Family family;
    ASSERT_TRUE(family.map(Family::create()));
    std::set<int> places;
    for (int i = 0; i < Family::most; i++)
        places.insert(family.take(getpid(), {1, true}));
    EXPECT_EQ(places.size(), static_cast<std::size_t>(Family::most));
    EXPECT_EQ(family.take(getpid(), {1, true}), -1);
    family.leave(77, getpid());
    EXPECT_EQ(family.take(getpid(), {1, true}), 77);
    EXPECT_TRUE(family.at(77).is_alone(getpid(), true));
}

TEST(Family, AChildSharesIt)
{
    Family family;
    ASSERT_TRUE(family.map(Family::create()));
    const int place = family.take(getpid(), {1, true});
    family.at(place).expect();
    const pid_t child = fork();
    if (child == 0) {
        family.at(place).add(getpid());
        family.at(place).expect_no_more();
        const bool alone = family.at(place).is_alone(getpid(), true);
        family.leave(place, getpid());
        _exit(alone ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(family.at(place).is_alone(getpid(), false));
}

// As where there is no memory: the program that it was left to has no such descriptor then.
TEST(Family, WhatCannotBeMappedIsClosed)
{
    const int fd = Family::create();
    const int unwritable = open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY);
    ASSERT_TRUE(Family::is_file(unwritable));
    Family family;
    EXPECT_FALSE(family.adopt(unwritable));
    EXPECT_FALSE(family.is_there());
    EXPECT_EQ(fcntl(unwritable, F_GETFD), -1);
    EXPECT_TRUE(family.adopt(fd));
    EXPECT_NE(fcntl(fd, F_GETFD), -1);
}

// The program that a process goes on as maps the memory anew, and takes nothing else for it.
TEST(Family, AnotherProgramFindsThePlace)
{
    Family family, next, none;
    const int fd = Family::create();
    ASSERT_TRUE(family.map(fd));
    const int place = family.take(getpid(), {77, true});
    ASSERT_TRUE(next.map(fd));
    EXPECT_EQ(next.socket_at(place).cookie, 77u);
    EXPECT_TRUE(next.socket_at(place).accepted);
    for (const int other : {-1, place + 1, Family::most, 1 << 30})
        EXPECT_EQ(next.socket_at(other).cookie, 0u);
    // In the list before it is no longer expected: never alone in between.
    family.at(place).expect();
    EXPECT_FALSE(next.at(place).is_alone(getpid(), true));
    next.at(place).add(getpid());
    next.at(place).expect_no_more();
    EXPECT_TRUE(family.at(place).is_alone(getpid(), true));
    close(fd);
    const int small = memfd_create("small", MFD_ALLOW_SEALING);
    EXPECT_FALSE(none.map(small));
    fcntl(small, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    EXPECT_FALSE(none.map(small));
    EXPECT_FALSE(none.map(-1));
    EXPECT_FALSE(none.map(0));
    close(small);
}

// Connections whose child is killed, or goes on as another program, leave nothing behind.
TEST(Family, PlacesOfTheDeadAreTakenAgain)
{
    Family family;
    ASSERT_TRUE(family.map(Family::create()));
    const std::int32_t dead = 0x70000000; // no such process
    for (int i = 0; i < Family::most + 2000; i++) {
        const int place = family.take(getpid(), {1, true});
        ASSERT_GE(place, 0) << i;
        family.at(place).add(dead + i % 1000);
        family.at(place).remove(getpid());
    }
    int kept = 0;
    while (family.take(getpid(), {1, true}) >= 0)
        kept++;
    EXPECT_EQ(kept, Family::most);
    for (int i = 0; i < 100; i++)
        EXPECT_EQ(family.take(getpid(), {1, true}), -1); // all are of the living
}

} // namespace
