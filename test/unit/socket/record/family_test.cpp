// SPDX-License-Identifier: BSD-3-Clause
#include "record/family.hpp"

#include <set>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ntb::socket;

namespace
{

TEST(Family, PlacesAreOfOneConnectionEach)
{
    Family family;
    ASSERT_TRUE(family.make());
    std::set<int> places;
    for (int i = 0; i < Family::most; i++)
        places.insert(family.take(getpid()));
    EXPECT_EQ(places.size(), static_cast<std::size_t>(Family::most));
    EXPECT_EQ(family.take(getpid()), -1);
    family.leave(77, getpid());
    EXPECT_EQ(family.take(getpid()), 77);
    EXPECT_TRUE(family.at(77).is_alone(getpid(), true));
}

TEST(Family, AChildSharesIt)
{
    Family family;
    ASSERT_TRUE(family.make());
    const int place = family.take(getpid());
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

// Connections whose child is killed, or goes on as another program, leave nothing behind.
TEST(Family, PlacesOfTheDeadAreTakenAgain)
{
    Family family;
    ASSERT_TRUE(family.make());
    const std::int32_t dead = 0x70000000; // no such process
    for (int i = 0; i < Family::most + 2000; i++) {
        const int place = family.take(getpid());
        ASSERT_GE(place, 0) << i;
        family.at(place).add(dead + i % 1000);
        family.at(place).remove(getpid());
    }
    int kept = 0;
    while (family.take(getpid()) >= 0)
        kept++;
    EXPECT_EQ(kept, Family::most);
    for (int i = 0; i < 100; i++)
        EXPECT_EQ(family.take(getpid()), -1); // all are of the living
}

} // namespace
