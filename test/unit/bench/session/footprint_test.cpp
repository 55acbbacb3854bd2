// SPDX-License-Identifier: BSD-3-Clause
#include "session/footprint.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace bench;

namespace
{

constexpr size_t bytes = size_t{32} << 20;
/// Looking takes memory as well, which a sanitizer does not give back at once.
constexpr size_t slack = size_t{4} << 20;

/// A memory file of that name with all of its pages.
class File
{
public:
    explicit File(const char *name)
    {
        const int fd = memfd_create(name, 0);
        EXPECT_EQ(ftruncate(fd, bytes), 0);
        m_at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        memset(m_at, 1, bytes);
    }
    ~File() { munmap(m_at, bytes); }
    File(const File &) = delete;
    File &operator=(const File &) = delete;
    const void *at() const { return m_at; }

private:
    void *m_at;
};

} // namespace

TEST(Footprint, CountsWhatIsTouched)
{
    const uint64_t before = own_footprint(nullptr, nullptr);
    const File file("window");
    EXPECT_GE(own_footprint(nullptr, nullptr) + slack, before + bytes);
}

TEST(Footprint, LeavesOutWhatIsSetApart)
{
    const File file("window");
    const uint64_t all = own_footprint(nullptr, nullptr);
    EXPECT_LE(own_footprint(file.at(), nullptr), all - bytes + slack);
}

TEST(Footprint, LeavesOutThePeersFileOfTheSameNameOnly)
{
    const File own("window");
    const File peer("window");
    const File other("another");
    const uint64_t all = own_footprint(nullptr, nullptr);
    const uint64_t without_peer = own_footprint(nullptr, own.at());
    EXPECT_LE(without_peer, all - bytes + slack);
    EXPECT_GT(without_peer, all - 2 * bytes);
}
