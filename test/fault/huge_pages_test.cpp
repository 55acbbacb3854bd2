// SPDX-License-Identifier: BSD-3-Clause
// Hosts on hugepages, of which there are no more: what cannot be had is refused, what is there goes
// on, and once there are pages again the same call works.
#include "host.hpp"

#include <cerrno>
#include <vector>

#include <gtest/gtest.h>

#include <linux/mman.h>
#include <sys/mman.h>

namespace
{

using test::Answer;
using test::HostSetup;
using test::Op;
using test::stream;
using test::traffic;

constexpr size_t page_bytes = size_t{2} << 20;
constexpr unsigned for_two_hosts = 96;
const std::string patient = "heartbeat_ms=30000,lost_ms=60000";

/// All free hugepages.
class TheRest
{
public:
    TheRest()
    {
        for (unsigned left = test::free_huge_pages(); left > 0; --left) {
            void *page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_2MB, -1, 0);
            if (page == MAP_FAILED)
                break; // the last ones are reserved
            pages_.push_back(page);
        }
    }
    ~TheRest()
    {
        for (void *page : pages_)
            munmap(page, page_bytes);
    }
    TheRest(const TheRest &) = delete;
    TheRest &operator=(const TheRest &) = delete;
    size_t pages() const { return pages_.size(); }

private:
    std::vector<void *> pages_;
};

class HugePages : public testing::Test
{
protected:
    void SetUp() override
    {
        if (test::free_huge_pages() < for_two_hosts)
            GTEST_SKIP() << "fewer than " << for_two_hosts << " free hugepages of 2 MB";
    }
    static void talk(test::Host &a, test::Host &b, uint32_t seed)
    {
        const auto there = stream(0, seed, 200, {8, 60, 500, 3000});
        const auto back = stream(0, seed + 1, 200, {8, 60, 500, 3000});
        b.begin(traffic({back}, {there}));
        a.begin(traffic({there}, {back}));
        for (test::Host *host : {&a, &b}) {
            const Answer answer = host->end();
            EXPECT_EQ(answer.rc, 0) << answer.text;
        }
    }

    test::Folder folder_;
};

TEST_F(HugePages, RunOutAndComeBack)
{
    const unsigned before = test::free_huge_pages();
    test::RemoteHost near(true);
    test::RemoteHost far(true);
    const std::string cable = folder_.file("cable");
    // Copies of what arrives lie in a pool of private memory: much of it.
    const HostSetup modest{.devargs = patient + ",rx=stable", .config = {.buffers = 1024}};
    const HostSetup large{.devargs = modest.devargs, .config = {.buffers = 16384}};
    ASSERT_EQ(near.bring_up(cable, modest), 0);
    ASSERT_EQ(far.bring_up(cable, modest), 0);
    ASSERT_TRUE(near.await_event('C') && far.await_event('C'));
    EXPECT_LT(test::free_huge_pages(), before) << "the hosts do not run on hugepages";
    {
        const TheRest rest;
        ASSERT_GT(rest.pages(), 0u);
        talk(near, far, 1);
        near.stop();
        ASSERT_TRUE(far.await_event('L'));
        EXPECT_EQ(near.restart(large), -ENOMEM);
        EXPECT_EQ(near.link().state, RTE_PMD_PLX_NTB_STOPPED);
        ASSERT_EQ(near.restart(modest), 0) << "as much as there is";
        ASSERT_TRUE(near.await_event('C', 2) && far.await_event('C', 2));
        talk(near, far, 3);
        near.stop();
        ASSERT_TRUE(far.await_event('L', 2));
    }
    ASSERT_EQ(near.restart(large), 0);
    ASSERT_TRUE(near.await_event('C', 3) && far.await_event('C', 3));
    talk(near, far, 5);
    for (test::Host *host : {static_cast<test::Host *>(&near), static_cast<test::Host *>(&far)}) {
        host->ask(Op::release);
        host->stop();
        EXPECT_EQ(host->outstanding(), 0u);
        EXPECT_EQ(host->ask(Op::detach).rc, 0);
    }
}

} // namespace
