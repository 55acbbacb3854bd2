// SPDX-License-Identifier: BSD-3-Clause
#include "wire/message.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <iterator>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace ntbc;

namespace
{
class Messages : public testing::Test
{
protected:
    void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0); }
    void TearDown() override
    {
        close(ends[0]);
        close(ends[1]);
    }
    void send_bytes(const void *bytes, size_t count)
    {
        ASSERT_EQ(::send(ends[0], bytes, count, 0), static_cast<ssize_t>(count));
    }
    // What is open here, by number.
    static int open_descriptors()
    {
        int count = 0;
        for (int fd = 0; fd < 256; fd++)
            count += fcntl(fd, F_GETFD) >= 0;
        return count;
    }

    int ends[2];
    Parcel parcel;
};

TEST_F(Messages, ArriveAsSent)
{
    Message m;
    m.type = Type::connect;
    m.id = 7;
    m.key_bytes = 3;
    memcpy(m.key, "abc", 3);
    ASSERT_EQ(message_send(ends[0], m), 0);
    ASSERT_EQ(message_receive(ends[1], &parcel), Received::message);
    EXPECT_EQ(memcmp(&parcel.message, &m, sizeof(m)), 0);
    EXPECT_EQ(parcel.count, 0);
    EXPECT_EQ(message_receive(ends[1], &parcel), Received::nothing);
    close(ends[0]);
    ends[0] = -1;
    EXPECT_EQ(message_receive(ends[1], &parcel), Received::closed);
}

TEST_F(Messages, BringTwoDescriptorsAndCloseThem)
{
    const int before = open_descriptors();
    ASSERT_EQ(message_send(ends[0], {}, ends, 2), 0);
    ASSERT_EQ(message_receive(ends[1], &parcel), Received::message);
    EXPECT_EQ(parcel.count, 2);
    EXPECT_EQ(open_descriptors(), before + 2);
    EXPECT_NE(fcntl(parcel.fd(0), F_GETFD) & FD_CLOEXEC, 0);
    const int taken = parcel.take_fd(0);
    parcel.clear();
    EXPECT_EQ(open_descriptors(), before + 1);
    close(taken);
}

TEST_F(Messages, OfOtherSizesAreRefused)
{
    Message m;
    char longer[sizeof(m) + 1] = {};
    memcpy(longer, &m, sizeof(m));
    send_bytes(longer, sizeof(longer));
    EXPECT_EQ(message_receive(ends[1], &parcel), Received::malformed);
    send_bytes(&m, sizeof(m) - 1);
    EXPECT_EQ(message_receive(ends[1], &parcel), Received::malformed);
    send_bytes(&m, 11);
    EXPECT_EQ(message_receive(ends[1], &parcel), Received::foreign);
}

TEST_F(Messages, OfOtherVersionsAreTold)
{
    Message m;
    m.version++;
    send_bytes(&m, sizeof(m));
    EXPECT_EQ(message_receive(ends[1], &parcel), Received::foreign);
    EXPECT_EQ(parcel.message.version, m.version);
    m = {};
    m.magic++;
    send_bytes(&m, sizeof(m));
    EXPECT_EQ(message_receive(ends[1], &parcel), Received::foreign);
}

TEST_F(Messages, WithAKeyThatIsTooLongAreRefused)
{
    Message m;
    m.key_bytes = key_bytes_max + 1;
    send_bytes(&m, sizeof(m));
    EXPECT_EQ(message_receive(ends[1], &parcel), Received::malformed);
}

// All of them are in the parcel: none is closed by the call that receives, or left by it.
TEST_F(Messages, WithMoreDescriptorsAreRefusedAndLeaveNone)
{
    const int before = open_descriptors();
    for (const size_t bytes : {sizeof(Message), size_t{0}})
        for (const int count : {fds_max + 1, fds_received_max}) {
            Message m;
            iovec part = {&m, bytes};
            int more[fds_received_max];
            std::fill(std::begin(more), std::end(more), ends[0]);
            const size_t more_bytes = sizeof(int) * static_cast<size_t>(count);
            alignas(cmsghdr) char control[CMSG_SPACE(sizeof(more))] = {};
            msghdr header = {};
            header.msg_iov = &part;
            header.msg_iovlen = 1;
            header.msg_control = control;
            header.msg_controllen = CMSG_SPACE(more_bytes);
            cmsghdr *rights = CMSG_FIRSTHDR(&header);
            rights->cmsg_level = SOL_SOCKET;
            rights->cmsg_type = SCM_RIGHTS;
            rights->cmsg_len = CMSG_LEN(more_bytes);
            memcpy(CMSG_DATA(rights), more, more_bytes);
            ASSERT_EQ(sendmsg(ends[0], &header, 0), static_cast<ssize_t>(bytes));
            EXPECT_EQ(message_receive(ends[1], &parcel),
                      bytes != 0 ? Received::malformed : Received::closed);
            EXPECT_EQ(parcel.count, count);
            parcel.clear();
            EXPECT_EQ(open_descriptors(), before);
        }
}

TEST_F(Messages, WithoutRoomForADescriptorAreStarved)
{
    ASSERT_EQ(message_send(ends[0], {}, ends, 2), 0);
    rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit none = {0, limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    const Received received = message_receive(ends[1], &parcel);
    setrlimit(RLIMIT_NOFILE, &limit);
    EXPECT_EQ(received, Received::starved);
}

TEST_F(Messages, DoNotWaitForAReceiverThatDoesNotRead)
{
    int sent = 0;
    while (message_send(ends[0], {}) == 0)
        ASSERT_LT(++sent, 100000);
    EXPECT_EQ(message_send(ends[0], {}), -EAGAIN);
}
} // namespace
