// SPDX-License-Identifier: BSD-3-Clause
// Windows as plain memory, and memory that is revoked without the peer's help.
#include "bench_pair.hpp"

#include <cerrno>
#include <sys/resource.h>
#include <thread>
#include <vector>

using namespace plx;
using namespace plx::test;

namespace
{
constexpr uint64_t exposed_bytes = 4 * mib;

class TwinMemory : public MemPair
{
protected:
    twin::Memory exposed{};

    void expose(bool huge = false)
    {
        set_up_both();
        ASSERT_EQ(twin::memory_add(b, exposed_bytes, -1, huge, &exposed), 0);
        open_inbound(b, 2, exposed.bus, exposed_bytes);
    }
    void freeze(twin::Host *host, bool frozen)
    {
        twin::inject(host, twin::Fault::freeze_remaps, frozen);
    }
    uint8_t *bytes() { return static_cast<uint8_t *>(exposed.base); }
};

TEST_F(TwinMemory, SizesAreChecked)
{
    attach_both();
    EXPECT_EQ(twin::memory_add(a, 3 * mib, -1, false, &exposed), -EINVAL);
    EXPECT_EQ(twin::memory_add(a, mib / 2, -1, false, &exposed), -EINVAL);
    EXPECT_EQ(twin::memory_add(a, 2048 * mib, -1, false, &exposed), -EINVAL);
    for (int i = 0; i < 256; i++)
        ASSERT_EQ(twin::memory_add(a, mib, -1, false, &exposed), 0);
    twin::Memory more{};
    EXPECT_EQ(twin::memory_add(a, mib, -1, false, &more), -ENOSPC);
    EXPECT_EQ(twin::memory_remove(a, exposed), 0);
    EXPECT_EQ(twin::memory_remove(a, exposed), -ENOENT);
    EXPECT_EQ(twin::memory_add(a, mib, -1, false, &exposed), 0);
}

TEST_F(TwinMemory, BusAddressesAreAlignedToTheSize)
{
    attach_both();
    ASSERT_EQ(twin::memory_add(a, 64 * mib, -1, false, &exposed), 0);
    EXPECT_EQ(exposed.bus % (64 * mib), 0u);
    EXPECT_EQ(exposed.bus, reinterpret_cast<uintptr_t>(exposed.base));
    EXPECT_EQ(exposed.page_bytes, 4096u);
}

TEST_F(TwinMemory, WithoutAWayLoadsGiveAllOnesAndStoresGoNowhere)
{
    attach_both();
    EXPECT_EQ(load32(a, 2, 0), ~0u);
    EXPECT_EQ(load32(a, 2, config.bar2_bytes - 4), ~0u);
    EXPECT_EQ(load32(a, 4, config.bar4_bytes - 4), ~0u);
    store32(a, 2, 0, 1);
    EXPECT_EQ(load32(a, 2, 4096), ~0u);
}

TEST_F(TwinMemory, StoresArriveInBothDirections)
{
    expose();
    twin::Memory other{};
    ASSERT_EQ(twin::memory_add(a, exposed_bytes, -1, false, &other), 0);
    open_inbound(a, 2, other.bus, exposed_bytes);
    store32(a, 2, 0x1000, 0x12345678);
    store32(b, 2, 0x2000, 0x9ABCDEF0);
    EXPECT_EQ(word_at(exposed, 0x1000), 0x12345678u);
    EXPECT_EQ(word_at(other, 0x2000), 0x9ABCDEF0u);
    EXPECT_EQ(load32(a, 2, 0x1000), 0x12345678u);
}

TEST_F(TwinMemory, HugePagesWhereGranted)
{
    expose(true);
    if (exposed.page_bytes == 4096)
        GTEST_SKIP() << "no huge pages here";
    store32(a, 2, 2 * mib, 0x1);
    EXPECT_EQ(word_at(exposed, 2 * mib), 0x1u);
    close_inbound(b, 2);
    EXPECT_EQ(load32(a, 2, 2 * mib), ~0u);
    EXPECT_EQ(word_at(exposed, 2 * mib), 0x1u);
}

TEST_F(TwinMemory, AStoreIntoAClosedWindowIsNotSeenOnceItOpens)
{
    expose();
    close_inbound(b, 2);
    store32(a, 2, 0, 0xDEAD);
    open_inbound(b, 2, exposed.bus, exposed_bytes);
    EXPECT_EQ(word_at(exposed, 0), 0u);
    EXPECT_EQ(load32(a, 2, 0), 0u);
}

TEST_F(TwinMemory, ATranslationMovesTheWindow)
{
    expose();
    twin::Memory second{};
    ASSERT_EQ(twin::memory_add(b, exposed_bytes, -1, false, &second), 0);
    store32(a, 2, 8, 1);
    write64(b, link_block + reg::bar_xlat(2), second.bus);
    store32(a, 2, 8, 2);
    EXPECT_EQ(word_at(exposed, 8), 1u);
    EXPECT_EQ(word_at(second, 8), 2u);
}

TEST_F(TwinMemory, RemovedMemoryIsGoneFromTheWindow)
{
    expose();
    ASSERT_EQ(twin::memory_remove(b, exposed), 0);
    EXPECT_EQ(load32(a, 2, 0), ~0u);
    store32(a, 2, 0, 1);
    EXPECT_EQ(load32(a, 2, 4096), ~0u);
}

// Without descriptors no fresh memory can be made.
TEST_F(TwinMemory, WithoutMemoryToMoveToTheChipDoesNotClaimThatAccessIsGone)
{
    expose();
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 3;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    close_inbound(b, 2);
    const uint32_t while_stuck = twin::csr_read32(b, 0x360);
    limit.rlim_cur = before;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_EQ(while_stuck, ~0u);
    freeze(a, true);
    EXPECT_NE(twin::csr_read32(b, 0x360), ~0u) << "the next access tries again";
    const uint8_t kept = bytes()[100];
    static_cast<volatile uint8_t *>(twin::bar(a, 2).base)[100] = static_cast<uint8_t>(kept + 1);
    EXPECT_EQ(bytes()[100], kept);
    freeze(a, false);
}

TEST_F(TwinMemory, AStaleMappingReachesNothingOnceAccessIsTakenAway)
{
    for (const bool huge : {false, true}) {
        expose(huge);
        for (uint64_t i = 0; i < exposed_bytes; i += 4)
            store32(a, 2, i, static_cast<uint32_t>(i));
        freeze(a, true);
        close_inbound(b, 2);
        for (uint64_t i = 0; i < exposed_bytes; i += 4)
            store32(a, 2, i, 0xBAD00000);
        for (uint64_t i = 0; i < exposed_bytes; i += 4)
            ASSERT_EQ(word_at(exposed, i), i);
        freeze(a, false);
        EXPECT_EQ(load32(a, 2, 0), ~0u);
        TearDown();
        a = b = nullptr;
    }
}

TEST_F(TwinMemory, EveryWayOfTakingAccessAwayFences)
{
    using Take = void (*)(twin::Host *);
    const Take takes[] = {
        [](twin::Host *host) { twin::csr_write32(host, link_block + reg::bar_xlat(3), 0x7F); },
        [](twin::Host *host) { twin::csr_write32(host, link_block + reg::pci_command_status, 0); },
        [](twin::Host *host) { twin::csr_write32(host, link_block + reg::req_id_lut_link[0], 0); },
        [](twin::Host *host) { twin::csr_write32(host, virt_block + reg::alut_control, 1u << 28); },
        [](twin::Host *host) { twin::csr_write32(host, reg::port_control, 2); },
        [](twin::Host *host) { twin::inject(host, twin::Fault::link_down, 1); },
    };
    for (const Take take : takes) {
        expose();
        freeze(a, true);
        take(b);
        store32(a, 2, 16, 0xBAD);
        EXPECT_EQ(word_at(exposed, 16), 0u);
        TearDown();
        a = b = nullptr;
    }
}

TEST_F(TwinMemory, AnUnchangedRouteMovesNothing)
{
    expose();
    freeze(a, true); // a mapping that were renewed now would stay stale
    open_inbound(b, 2, exposed.bus, exposed_bytes);
    twin::csr_write32(b, virt_block + reg::pci_command_status, 6);
    store32(a, 2, 16, 0x600D);
    EXPECT_EQ(word_at(exposed, 16), 0x600Du);
    freeze(a, false);
}

TEST_F(TwinMemory, LocalWritersLoseNothingWhileMemoryMoves)
{
    expose();
    constexpr unsigned rounds = 30;
    std::atomic<bool> stop{false};
    std::vector<uint64_t> last(exposed_bytes / 4096, 0);
    // One word a page, ever growing: whatever is there at the end must be the last one stored.
    std::thread writer([&] {
        for (uint64_t value = 1; !stop; value++)
            for (size_t page = 0; page < last.size(); page++) {
                auto *word = reinterpret_cast<volatile uint64_t *>(bytes() + page * 4096 + 64);
                *word = value;
                last[page] = value;
            }
    });
    for (unsigned i = 0; i < rounds; i++) {
        close_inbound(b, 2);
        open_inbound(b, 2, exposed.bus, exposed_bytes);
    }
    stop = true;
    writer.join();
    for (size_t page = 0; page < last.size(); page++)
        ASSERT_EQ(*reinterpret_cast<uint64_t *>(bytes() + page * 4096 + 64), last[page]);
    EXPECT_GT(last.back(), rounds);
}

TEST_F(TwinMemory, DataPathsSurviveRemapsUnderThem)
{
    expose();
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> stores{0};
    std::thread path([&] {
        while (!stop) {
            for (uint64_t i = 0; i < exposed_bytes; i += 4096)
                store32(a, 2, i, 1);
            stores++;
        }
    });
    for (unsigned i = 0; i < 30 || stores == 0; i++) {
        close_inbound(b, 2);
        open_inbound(b, 2, exposed.bus, exposed_bytes);
    }
    stop = true;
    path.join();
    store32(a, 2, 0, 0x11);
    EXPECT_EQ(word_at(exposed, 0), 0x11u);
}

// Posted writes keep their order: what arrives before the end of a way is the beginning of what was
// stored.
TEST_F(TwinMemory, NoStoreArrivesAfterOneThatIsLost)
{
    constexpr uint64_t low = 64;
    constexpr uint64_t high = exposed_bytes - 4096;
    for (const bool upward : {false, true}) {
        expose();
        const uint64_t first = upward ? low : high;
        const uint64_t second = upward ? high : low;
        std::atomic<bool> stop{false};
        std::atomic<uint32_t> stored{0};
        std::thread path([&] {
            for (uint32_t value = 1; !stop; value++) {
                store32(a, 2, first, value);
                store32(a, 2, second, value);
                stored.store(value);
            }
        });
        for (unsigned round = 0; round < 50; round++) {
            const uint32_t before = stored;
            EXPECT_TRUE(await([&] { return stored > before + 1; }));
            close_inbound(b, 2);
            const uint32_t arrived = word_at(exposed, second);
            EXPECT_LE(arrived, word_at(exposed, first));
            open_inbound(b, 2, exposed.bus, exposed_bytes);
        }
        stop = true;
        path.join();
        TearDown();
        a = b = nullptr;
    }
}

TEST_F(TwinMemory, ComingAndGoingIsReportedOnTheCablesThread)
{
    struct Seen {
        std::atomic<int> changes{0};
        std::atomic<bool> connected{false};
        twin::Host *host = nullptr;
    } seen;
    expose();
    seen.host = b;
    twin::on_cable(
        b,
        [](void *ctx, bool connected) {
            auto *s = static_cast<Seen *>(ctx);
            twin::csr_write32(s->host, link_block + reg::pci_command_status, connected ? 6 : 0);
            s->connected = connected;
            s->changes++;
        },
        &seen);
    twin::detach(a);
    a = nullptr;
    EXPECT_TRUE(await([&] { return seen.changes >= 1 && !seen.connected; }));
    twin::Error error{};
    ASSERT_EQ(twin::attach(config, &a, &error), 0);
    EXPECT_TRUE(await([&] { return seen.connected.load(); }));
    twin::on_cable(b, nullptr, nullptr);
    store32(a, 2, 0, 0x77);
    EXPECT_EQ(word_at(exposed, 0), 0x77u);
}

TEST_F(TwinMemory, APeerThatWentLosesAccess)
{
    expose();
    store32(a, 2, 0, 0x22);
    twin::detach(a);
    a = nullptr;
    EXPECT_EQ(word_at(exposed, 0), 0x22u);
    twin::Error error{};
    ASSERT_EQ(twin::attach(config, &a, &error), 0);
    EXPECT_EQ(load32(a, 2, 0), 0x22u) << "its chip is as it was, and so is ours";
}
} // namespace
