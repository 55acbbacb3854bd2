// SPDX-License-Identifier: BSD-3-Clause
#include "port/door.hpp"

#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "port/memory_files.hpp"

namespace
{

using namespace ntb::verbs;

class DoorTest : public testing::Test
{
protected:
    void SetUp() override { ASSERT_EQ(door.open(), 0); }
    int descriptor() const { return segment->descriptor(); }
    static bool is_same(int one, int other)
    {
        struct stat first, second;
        return fstat(one, &first) == 0 && fstat(other, &second) == 0 &&
               first.st_ino == second.st_ino;
    }

    const uid_t me = getuid();
    MemoryFiles files;
    std::unique_ptr<Segment> segment = files.create(4096);
    Door door;
};

TEST_F(DoorTest, WhatIsBroughtIsTakenOnce)
{
    EXPECT_EQ(door.take(1, me), -1);
    ASSERT_TRUE(bring(door.name(), me, 1, descriptor()));
    ASSERT_TRUE(bring(door.name(), me, 2, STDIN_FILENO));
    const int taken = door.take(1, me);
    ASSERT_GE(taken, 0);
    EXPECT_TRUE(is_same(taken, descriptor()));
    close(taken);
    EXPECT_EQ(door.take(1, me), -1);
    const int other = door.take(2, me);
    EXPECT_GE(other, 0);
    close(other);
}

TEST_F(DoorTest, IsOfItsUserAlone)
{
    EXPECT_FALSE(bring(door.name(), me + 1, 1, descriptor())) << "the door is not that user's";
    EXPECT_EQ(door.take(1, me), -1);
    ASSERT_TRUE(bring(door.name(), me, 1, descriptor()));
    EXPECT_EQ(door.take(1, me + 1), -1) << "it came from this one";
}

TEST_F(DoorTest, NobodyIsBehindOneThatIsNotThere)
{
    EXPECT_FALSE(bring({{1, 2}}, me, 1, descriptor()));
    EXPECT_FALSE(bring({}, me, 1, descriptor()));
    Door closed;
    EXPECT_EQ(closed.take(1, me), -1);
}

// A guest that is between its coming in and its bringing while the owner looks for another's.
TEST_F(DoorTest, WhoComesInIsHeardWhenItBrings)
{
    sockaddr_un place = {};
    place.sun_family = AF_UNIX;
    const DoorName name = door.name();
    const int length = snprintf(place.sun_path + 1, sizeof(place.sun_path) - 1,
                                "ntb-verbs/%016" PRIx64 "%016" PRIx64, name.half[0], name.half[1]);
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                              static_cast<std::size_t>(length));
    const auto come_in = [&] {
        const int guest = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        EXPECT_EQ(connect(guest, reinterpret_cast<const sockaddr *>(&place), bytes), 0);
        return guest;
    };
    const int guest = come_in();
    EXPECT_EQ(door.take(5, me), -1);
    std::uint64_t number = 5;
    iovec data = {&number, sizeof(number)};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    msghdr header = {};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = room;
    header.msg_controllen = sizeof(room);
    cmsghdr *const control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    const int brought = descriptor();
    memcpy(CMSG_DATA(control), &brought, sizeof(brought));
    ASSERT_EQ(sendmsg(guest, &header, 0), ssize_t{sizeof(number)});
    const int taken = door.take(5, me);
    EXPECT_GE(taken, 0);
    close(taken);
    close(guest);
    // Those that never bring anything keep out nobody.
    std::vector<int> idle;
    for (int i = 0; i < 100; ++i) {
        idle.push_back(come_in());
        EXPECT_EQ(door.take(6, me), -1);
    }
    ASSERT_TRUE(bring(door.name(), me, 6, descriptor()));
    const int last = door.take(6, me);
    EXPECT_GE(last, 0);
    close(last);
    for (const int each : idle)
        close(each);
}

TEST_F(DoorTest, WhoFillsItMakesOthersFail)
{
    int brought = 0;
    while (brought < 1000 && bring(door.name(), me, 7, descriptor()))
        ++brought;
    EXPECT_LT(brought, 1000);
    EXPECT_EQ(door.take(1, me), -1);
    ASSERT_TRUE(bring(door.name(), me, 1, descriptor())) << "there is room again";
    const int taken = door.take(1, me);
    EXPECT_GE(taken, 0);
    close(taken);
}

} // namespace
