// SPDX-License-Identifier: BSD-3-Clause
// Whom a cable lets in: processes of the same user, and of one more where that is said.
#include "far_host.hpp"

#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

using namespace plx;
using namespace plx::test;

namespace
{
constexpr uint32_t nobody = 65534;

unsigned mode_of(const std::string &path)
{
    struct stat st {
    };
    return stat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
}

class TwinCableUsers : public BetweenProcesses
{
protected:
    twin::Error error{};

    int attach_near() { return twin::attach(config, &near, &error); }
    void share_folder() { ASSERT_EQ(chmod(folder.c_str(), 01777), 0); }
    std::string lock() const { return path + ".lock"; }
};

TEST_F(TwinCableUsers, NobodyElseCanUseWhatIsMade)
{
    const mode_t before = umask(0);
    const int code = attach_near();
    umask(before);
    ASSERT_EQ(code, 0) << error.text;
    EXPECT_EQ(mode_of(path), 0600u);
    EXPECT_FALSE(std::filesystem::exists(lock())) << "it is gone when it is not held";
    twin::Memory memory{};
    ASSERT_EQ(twin::memory_add(near, mib, -1, false, &memory), 0);
    unsigned descriptors = 0;
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
        if (!target.starts_with("/memfd:plx-twin-"))
            continue;
        descriptors++;
        EXPECT_EQ(mode_of(entry.path().string()), 0600u) << target;
    }
    EXPECT_GE(descriptors, 2u);
}

TEST_F(TwinCableUsers, ALockOnTheFolderHoldsNobodyUp)
{
    const int held = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(flock(held, LOCK_EX), 0);
    EXPECT_EQ(attach_near(), 0) << error.text;
    FarHost far(config);
    EXPECT_EQ(far(Do::attach), 0);
    close(held);
}

TEST_F(TwinCableUsers, WhatADeadProcessLeftOfItsLockHoldsNobodyUp)
{
    close(open(lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(attach_near(), 0) << error.text;
    EXPECT_FALSE(std::filesystem::exists(lock()));
}

TEST_F(TwinCableUsers, AnythingElseInPlaceOfTheLockIsRefused)
{
    ASSERT_EQ(symlink("elsewhere", lock().c_str()), 0);
    EXPECT_LT(attach_near(), 0);
    EXPECT_FALSE(std::filesystem::exists(folder + "/elsewhere"));
    ASSERT_EQ(unlink(lock().c_str()), 0);
    ASSERT_EQ(mkfifo(lock().c_str(), 0600), 0);
    EXPECT_LT(attach_near(), 0);
    ASSERT_EQ(unlink(lock().c_str()), 0);
    EXPECT_EQ(attach_near(), 0) << error.text;
}

/// With a second user, for which it takes root.
class TwinCableOtherUser : public TwinCableUsers
{
protected:
    void SetUp() override
    {
        if (geteuid() != 0)
            GTEST_SKIP() << "needs root";
        share_folder();
    }
    /// Makes the file its process's, whatever the mode says.
    void expose_socket() { ASSERT_EQ(chmod(path.c_str(), 0666), 0); }
};

TEST_F(TwinCableOtherUser, IsKeptOut)
{
    ASSERT_EQ(attach_near(), 0) << error.text;
    FarHost far(config);
    ASSERT_EQ(far(Do::become, nobody), 0);
    EXPECT_EQ(far(Do::attach), -EACCES) << "by the mode of the file";
    expose_socket();
    EXPECT_EQ(far(Do::attach), -EACCES) << "by its user";
    EXPECT_FALSE(twin::cable_connected(near));
    FarHost good(config);
    EXPECT_EQ(good(Do::attach), 0);
    EXPECT_TRUE(await([&] { return twin::cable_connected(near); }));
}

TEST_F(TwinCableOtherUser, IsNotJoinedWhereItCameFirst)
{
    FarHost far(config);
    ASSERT_EQ(far(Do::become, nobody), 0);
    ASSERT_EQ(far(Do::attach), 0);
    EXPECT_EQ(attach_near(), -EACCES);
    EXPECT_NE(strstr(error.text, "cable_uid=65534"), nullptr) << error.text;
    EXPECT_EQ(far(Do::connected), 0);
}

TEST_F(TwinCableOtherUser, CannotHoldTheLock)
{
    const int made = open(lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(fchown(made, nobody, nobody), 0);
    ASSERT_EQ(flock(made, LOCK_EX), 0);
    EXPECT_EQ(attach_near(), -EACCES);
    EXPECT_NE(strstr(error.text, "65534"), nullptr) << error.text;
    close(made);
}

TEST_F(TwinCableOtherUser, IsLetInWhereThatIsSaid)
{
    for (const bool other_first : {false, true}) {
        config.cable_uid = 0;
        FarHost far(config);
        ASSERT_EQ(far(Do::become, nobody), 0);
        config.cable_uid = nobody;
        if (other_first) {
            ASSERT_EQ(far(Do::attach), 0);
        }
        ASSERT_EQ(attach_near(), 0) << error.text;
        if (!other_first) {
            ASSERT_EQ(far(Do::attach), 0);
        }
        EXPECT_TRUE(await([&] { return twin::cable_connected(near); }));
        twin::detach(near);
        near = nullptr;
    }
}
} // namespace
