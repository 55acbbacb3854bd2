// SPDX-License-Identifier: BSD-3-Clause
#include "wire/sealed.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace ntbc;

namespace
{
TEST(Sealed, MemoryKeepsItsSizeAndItsSeals)
{
    const int fd = sealed_create("test", 8192);
    ASSERT_GE(fd, 0);
    EXPECT_TRUE(sealed_check(fd, 8192));
    EXPECT_FALSE(sealed_check(fd, 4096));
    EXPECT_EQ(ftruncate(fd, 4096), -1);
    EXPECT_EQ(ftruncate(fd, 16384), -1);
    EXPECT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    void *at = sealed_map(fd, 8192);
    EXPECT_NE(at, nullptr);
    close(fd);
}

TEST(Sealed, OtherDescriptorsAreRefused)
{
    const int open = memfd_create("test", MFD_ALLOW_SEALING);
    ASSERT_EQ(ftruncate(open, 8192), 0);
    EXPECT_FALSE(sealed_check(open, 8192)); // could shrink below its mapping
    ASSERT_EQ(fcntl(open, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    EXPECT_FALSE(sealed_check(open, 8192)); // could be sealed against writing
    ASSERT_EQ(fcntl(open, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL), 0);
    EXPECT_FALSE(sealed_check(open, 8192)); // is
    close(open);
    const int null = ::open("/dev/null", O_RDWR);
    EXPECT_FALSE(sealed_check(null, 0));
    EXPECT_FALSE(is_bell(null));
    close(null);
    EXPECT_FALSE(sealed_check(-1, 8192));
}

TEST(Sealed, BellsAreConnectedLocalStreams)
{
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    EXPECT_TRUE(is_bell(pair[0]));
    close(pair[0]);
    close(pair[1]);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    EXPECT_FALSE(is_bell(pair[0]));
    close(pair[0]);
    close(pair[1]);
    const int inet = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_FALSE(is_bell(inet));
    close(inet);
}
} // namespace
