// SPDX-License-Identifier: BSD-3-Clause
#include "kernel/descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

using namespace ntb::socket;

namespace
{

class Descriptors : public testing::Test
{
protected:
    Descriptors() { getrlimit(RLIMIT_NOFILE, &before_); }
    ~Descriptors() override
    {
        for (const int fd : taken)
            close(fd);
        setrlimit(RLIMIT_NOFILE, &before_);
    }
    void limit(rlim_t most)
    {
        const rlimit now = {most, before_.rlim_max};
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
    }
    int move()
    {
        const int fd = kernel::out_of_the_way(open("/dev/null", O_RDONLY));
        if (fd >= 0)
            taken.push_back(fd);
        return fd;
    }

    std::vector<int> taken;

private:
    rlimit before_;
};

TEST_F(Descriptors, AreWhereProgramsDoNotLook)
{
    limit(200);
    EXPECT_EQ(move(), 100);
    EXPECT_EQ(fcntl(100, F_GETFD), FD_CLOEXEC);
    limit(4000);
    EXPECT_EQ(move(), 960);
    taken.push_back(kernel::copy_for_exec(960));
    EXPECT_EQ(taken.back(), 961);
    EXPECT_EQ(fcntl(961, F_GETFD), 0);
    EXPECT_EQ(kernel::out_of_the_way(-1), -1);
    EXPECT_EQ(kernel::copy_for_exec(-1), -1);
}

TEST_F(Descriptors, LeaveTheLastOnesToTheProgram)
{
    limit(160);
    while (move() >= 0)
        ;
    EXPECT_EQ(taken.size(), 70u);
    EXPECT_EQ(taken.back(), 149);
    const int free = open("/dev/null", O_RDONLY);
    EXPECT_LT(free, 80) << "what could not be moved is closed";
    close(free);
    EXPECT_EQ(fcntl(150, F_GETFD), -1);
}

} // namespace
