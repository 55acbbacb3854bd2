// SPDX-License-Identifier: BSD-3-Clause
#include "programs.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/figures.hpp"

using namespace ntb::socket::preload;

namespace
{

// What a program under the preload keeps open, of this process.
class Programs : public testing::Test
{
protected:
    Programs()
    {
        fd = memfd_create(Figures::name, MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, 4096) != 0)
            std::abort();
        void *memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (memory == MAP_FAILED)
            std::abort();
        figures = new (memory) Figures{};
        figures->magic = Figures::right_magic;
        figures->version = Figures::right_version;
        strncpy(figures->program, "prog\x1b[2J", sizeof(figures->program) - 1);
    }
    ~Programs() override
    {
        munmap(static_cast<void *>(figures), 4096);
        close(fd);
    }

    static std::optional<ntbd::Program> found()
    {
        const std::vector<ntbd::Program> all = ntbd::find_programs();
        const auto mine = [](const ntbd::Program &one) { return one.pid == getpid(); };
        EXPECT_LE(std::count_if(all.begin(), all.end(), mine), 1);
        const auto one = std::find_if(all.begin(), all.end(), mine);
        return one == all.end() ? std::nullopt : std::optional(*one);
    }

    int fd;
    Figures *figures;
};

TEST_F(Programs, AreFoundWithTheirReasons)
{
    figures->matched = 7;
    figures->reasons[static_cast<int>(Reason::claimed)] = 9;
    figures->reasons[static_cast<int>(Reason::refused)] = 2;
    const auto one = found();
    ASSERT_TRUE(one);
    EXPECT_EQ(one->name, "prog?[2J");
    EXPECT_EQ(one->matched, 7u);
    ASSERT_EQ(one->reasons.size(), 2u);
    EXPECT_EQ(one->reasons[0].connections, 9u);
    EXPECT_STREQ(one->reasons[0].text, reason_texts[static_cast<int>(Reason::claimed)]);
    EXPECT_EQ(one->reasons[1].connections, 2u);
}

TEST_F(Programs, AreListedOnceWithTheirChildren)
{
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    const std::vector<ntbd::Program> all = ntbd::find_programs();
    EXPECT_EQ(std::count_if(all.begin(), all.end(),
                            [child](const ntbd::Program &one) {
                                return one.pid == getpid() || one.pid == child;
                            }),
              1);
    close(ends[1]);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    close(ends[0]);
}

// Once the numbers of processes have begun again, as they do within a run of all tests.
TEST_F(Programs, AreListedByTheirOwnNumberBesideAChildWithALowerOne)
{
    const std::string folder =
        std::filesystem::temp_directory_path() / ("programs_test_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    for (const char *pid : {"7", "12", "40"})
        std::filesystem::create_directory_symlink("/proc/self", folder + "/" + pid);
    figures->pid = 12;
    std::vector<ntbd::Program> all = ntbd::find_programs(folder);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].pid, 12);
    // One that is gone is none of them.
    figures->pid = 30;
    all = ntbd::find_programs(folder);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].pid, 7);
    std::filesystem::remove_all(folder);
}

TEST_F(Programs, OfAnotherVersionOrShorterAreLeftOut)
{
    figures->version = Figures::right_version + 1;
    EXPECT_FALSE(found());
    figures->version = Figures::right_version;
    figures->magic = 0;
    EXPECT_FALSE(found());
    figures->magic = Figures::right_magic;
    ASSERT_TRUE(found());
    ASSERT_EQ(ftruncate(fd, sizeof(Figures) - 1), 0);
    EXPECT_FALSE(found());
    ASSERT_EQ(ftruncate(fd, 4096), 0);
}

TEST(ProgramsWithoutProcfs, AreNone)
{
    EXPECT_TRUE(ntbd::find_programs("/nowhere").empty());
    const std::string folder = std::filesystem::temp_directory_path() / "programs_test";
    std::filesystem::create_directories(folder + "/12/fd");
    std::filesystem::create_directories(folder + "/12x/fd");
    std::filesystem::create_symlink("/memfd:ntbsocket-figures", folder + "/12/fd/3");
    EXPECT_TRUE(ntbd::find_programs(folder).empty()) << "what cannot be opened";
    std::filesystem::remove_all(folder);
}

} // namespace
