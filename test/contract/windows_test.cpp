// SPDX-License-Identifier: BSD-3-Clause
// Memory is exposed to the peer beside the queue pairs and revoked: doc/windows.md.
#include "pair.hpp"

#include <cerrno>
#include <cstring>
#include <vector>

using namespace contract;

namespace
{

constexpr uint64_t mib = uint64_t{1} << 20;
constexpr uint32_t both = RTE_PMD_PLX_NTB_MEMORY_WRITE | RTE_PMD_PLX_NTB_MEMORY_READ;
constexpr uint32_t any = RTE_PMD_PLX_NTB_MEMORY_ANY;

class Windows : public Pair
{
protected:
    using Memory = rte_pmd_plx_ntb_memory;

    /// Small queues, and segments of 64 KiB where the BAR is ours to set up.
    static HostSetup small(const std::string &more = "")
    {
        return {.devargs = patient + ",segment=64,buffers=256,ring=64" + more};
    }
    rte_pmd_plx_ntb_memory_info info()
    {
        rte_pmd_plx_ntb_memory_info out{};
        out.size = sizeof(out);
        EXPECT_EQ(rte_pmd_plx_ntb_memory_info_get(id(), &out), 0);
        return out;
    }
    Memory alloc(size_t bytes)
    {
        Memory out{};
        EXPECT_EQ(rte_pmd_plx_ntb_memory_alloc(id(), bytes, &out), 0);
        return out;
    }
    int expose(const Memory &m, uint64_t *offset, uint32_t rights = both, uint32_t window = any)
    {
        return rte_pmd_plx_ntb_memory_expose(id(), m.address, m.bytes, rights, window, offset);
    }
    int revoke(const Memory &m) { return rte_pmd_plx_ntb_memory_revoke(id(), m.address, m.bytes); }
    int free(const Memory &m) { return rte_pmd_plx_ntb_memory_free(id(), m.address); }
    int find(const Memory &m)
    {
        rte_pmd_plx_ntb_memory_exposed found{};
        return rte_pmd_plx_ntb_memory_find(id(), m.address, &found);
    }
    static volatile uint64_t &word(const Memory &m, uint64_t at = 0)
    {
        return *reinterpret_cast<volatile uint64_t *>(static_cast<char *>(m.address) + at);
    }
    /// The far host reaches the memory at @p offset.
    ::testing::AssertionResult arrives(const Memory &m, uint64_t offset, uint64_t value,
                                       uint64_t at = 0)
    {
        const bool seen =
            far().store_until(offset + at, value, [&] { return word(m, at) == value; });
        return seen ? ::testing::AssertionSuccess()
                    : ::testing::AssertionFailure() << "nothing arrived at 0x" << std::hex << at;
    }
    /// It does not: a store that could arrive is followed by one that does, on the way of before.
    void expect_lost(const Memory &m, uint64_t offset, const Memory &open, uint64_t open_offset)
    {
        const uint64_t before = word(m);
        EXPECT_EQ(far().ask(Op::store, offset, before + 1).rc, 0);
        ++probe_;
        EXPECT_TRUE(arrives(open, open_offset, probe_));
        EXPECT_EQ(word(m), before);
    }

private:
    uint64_t probe_ = 0x1000;
};

TEST_P(Windows, ExposableMemoryCanBeQueried)
{
    bring_up();
    const rte_pmd_plx_ntb_memory_info i = info();
    EXPECT_EQ(i.translation, RTE_PMD_PLX_NTB_MEMORY_ALUT);
    EXPECT_EQ(i.segments, 256u);
    EXPECT_EQ(i.segment_bytes, 2 * mib);
    EXPECT_EQ(i.window_bytes, 512 * mib);
    EXPECT_EQ(i.parts, 1u);
    EXPECT_EQ(i.free_segments, 256 - 16 / 2) << "the block of the queue pairs has 16 MiB";
    EXPECT_EQ(i.longest_free, i.free_segments);
    EXPECT_EQ(i.store_rights, both);
    EXPECT_EQ(i.memory_bytes_max, 512 * mib);
}

TEST_P(Windows, AlignmentCanBeQueried)
{
    bring_up();
    rte_pmd_plx_ntb_memory_align align = {.size = sizeof(align)};
    ASSERT_EQ(rte_pmd_plx_ntb_memory_align_get(id(), 5 * mib, &align), 0);
    EXPECT_EQ(align.addr_align, info().segment_bytes);
    EXPECT_EQ(align.size_align, info().segment_bytes);
    EXPECT_EQ(align.size_max, info().window_bytes);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_align_get(id(), align.size_max + 1, &align), -ERANGE);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_align_get(id(), 0, &align), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_align_get(id(), 1, nullptr), -EINVAL);
    align.size = 1;
    EXPECT_EQ(rte_pmd_plx_ntb_memory_align_get(id(), 1, &align), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_align_get(63, 1, &align), -ENODEV);
}

TEST_P(Windows, ExposedMemoryIsReachedUntilItIsRevoked)
{
    bring_up();
    const Memory exposed = alloc(1);
    const Memory other = alloc(2 * mib);
    EXPECT_EQ(exposed.bytes, 2 * mib) << "a whole segment";
    EXPECT_EQ(word(exposed, exposed.bytes - 8), 0u);
    word(exposed, 8) = 0x77;

    uint64_t offset = 0;
    uint64_t other_offset = 0;
    ASSERT_EQ(expose(exposed, &offset), 0);
    ASSERT_EQ(expose(other, &other_offset), 0);
    EXPECT_EQ(offset, 16 * mib) << "behind the block of the queue pairs";
    EXPECT_EQ(other_offset, offset + 2 * mib);
    EXPECT_TRUE(arrives(exposed, offset, 0x11));
    EXPECT_TRUE(arrives(exposed, offset, 0x12, 2 * mib - 8));
    EXPECT_TRUE(arrives(other, other_offset, 0x13));
    EXPECT_EQ(far().ask(Op::load, offset + 8).value, 0x77u);

    rte_pmd_plx_ntb_memory_exposed found{};
    ASSERT_EQ(
        rte_pmd_plx_ntb_memory_find(id(), static_cast<char *>(exposed.address) + 4711, &found), 0);
    EXPECT_EQ(found.address, exposed.address);
    EXPECT_EQ(found.bytes, exposed.bytes);
    EXPECT_EQ(found.offset, offset);
    EXPECT_EQ(found.rights, both);
    EXPECT_EQ(found.part, 0u);

    ASSERT_EQ(revoke(exposed), 0);
    expect_lost(exposed, offset, other, other_offset);
    EXPECT_EQ(find(exposed), -ENOENT);
    EXPECT_EQ(find(other), 0);
    EXPECT_EQ(word(exposed, 2 * mib - 8), 0x12u) << "what had arrived stays";
    ASSERT_EQ(expose(exposed, &offset), 0) << "again";
    EXPECT_TRUE(arrives(exposed, offset, 0x21));
    EXPECT_EQ(revoke(exposed), 0);
    EXPECT_EQ(revoke(other), 0);
    EXPECT_EQ(free(exposed), 0);
    EXPECT_EQ(free(other), 0);
    EXPECT_EQ(info().free_segments, 248u);
    both_ways(stream(0, 5, 200, {8, 3000}));
}

TEST_P(Windows, PartsOfAMemoryAreExposedOneByOne)
{
    bring_up(small(), small());
    const uint64_t segment = info().segment_bytes;
    ASSERT_EQ(segment, near_beyond_link() ? 2 * mib : 64u << 10);
    const Memory m = alloc(16 * segment);
    auto *const base = static_cast<char *>(m.address);
    uint64_t first = 0;
    uint64_t third = 0;
    ASSERT_EQ(rte_pmd_plx_ntb_memory_expose(id(), base, segment, both, any, &first), 0);
    ASSERT_EQ(
        rte_pmd_plx_ntb_memory_expose(id(), base + 2 * segment, 2 * segment, both, any, &third), 0);
    EXPECT_EQ(third, first + segment);
    const Memory part{base + 2 * segment, 2 * segment};
    EXPECT_TRUE(arrives(part, third, 0x31, segment));
    uint64_t offset = 0;
    EXPECT_EQ(rte_pmd_plx_ntb_memory_expose(id(), base, 3 * segment, both, any, &offset), -EBUSY);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_revoke(id(), base, 2 * segment), -ENOENT) << "not as exposed";
    EXPECT_EQ(rte_pmd_plx_ntb_memory_revoke(id(), base, segment), 0);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_expose(id(), base + segment, segment, both, any, &offset), 0);
    EXPECT_EQ(offset, first) << "the free segment";
    EXPECT_EQ(free(m), -EBUSY);
    EXPECT_TRUE(arrives(part, third, 0x32));
    EXPECT_EQ(rte_pmd_plx_ntb_memory_revoke(id(), base + segment, segment), 0);
    EXPECT_EQ(revoke(part), 0);
    EXPECT_EQ(free(m), 0);
}

TEST_P(Windows, QueuesAreNotDisturbed)
{
    bring_up();
    const Stream s = stream(0, 9, 4000, {8, 48, 300, 3000});
    const Memory m = alloc(4 * mib);
    far().begin(traffic({s}, {s}));
    near().begin(traffic({s}, {s}));
    for (int i = 0; i < 20; ++i) {
        uint64_t offset = 0;
        ASSERT_EQ(expose(m, &offset), 0);
        ASSERT_EQ(revoke(m), 0);
    }
    const Answer here = near().end();
    const Answer there = far().end();
    EXPECT_EQ(here.rc, 0) << here.text;
    EXPECT_EQ(there.rc, 0) << there.text;
    EXPECT_EQ(near().events(), "C");
    EXPECT_EQ(free(m), 0);
}

TEST_P(Windows, ALossRevokes)
{
    bring_up();
    const Memory m = alloc(2 * mib);
    const Memory kept = alloc(2 * mib);
    uint64_t offset = 0;
    ASSERT_EQ(expose(m, &offset), 0);
    ASSERT_EQ(expose(kept, &offset), 0);
    EXPECT_TRUE(arrives(kept, offset, 0x41));
    far().stop();
    ASSERT_TRUE(near().await_event('L'));
    ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_WAITING));
    EXPECT_EQ(find(m), -ENOENT);
    EXPECT_EQ(find(kept), -ENOENT);
    EXPECT_EQ(revoke(m), -ENOENT);
    EXPECT_EQ(info().free_segments, 248u);
    EXPECT_EQ(expose(m, &offset), -ENOTCONN);
    EXPECT_EQ(free(m), 0);

    ASSERT_EQ(far().restart(usual()), 0);
    await_connected(2);
    EXPECT_EQ(find(kept), -ENOENT) << "what was exposed belongs to the connection";
    ASSERT_EQ(expose(kept, &offset), 0);
    EXPECT_EQ(word(kept), 0x41u) << "memory is the owner's, and stays";
    EXPECT_TRUE(arrives(kept, offset, 0x42));
    near().stop();
    EXPECT_EQ(find(kept), -ENOENT) << "so does a stop";
    EXPECT_EQ(info().free_segments, 0u) << "nothing can be exposed while it is stopped";
    EXPECT_EQ(free(kept), 0);
}

TEST_P(Windows, BothSidesExpose)
{
    bring_up();
    const Memory m = alloc(2 * mib);
    uint64_t mine = 0;
    ASSERT_EQ(expose(m, &mine), 0);
    const Answer theirs = far().ask(Op::expose, 4 * mib, uint64_t{both});
    ASSERT_EQ(theirs.rc, 0);
    EXPECT_TRUE(arrives(m, mine, 0x51));
    EXPECT_TRUE(near().store_until(theirs.value + 3 * mib, 0x52,
                                   [&] { return far().ask(Op::word, 3 * mib).value == 0x52; }));
    EXPECT_EQ(near().ask(Op::load, theirs.value + 3 * mib).value, 0x52u);
    EXPECT_EQ(far().ask(Op::revoke, 0, uint64_t{1}).rc, 0);
    EXPECT_EQ(revoke(m), 0);
    EXPECT_EQ(free(m), 0);
}

TEST_P(Windows, AllSegmentsCanBeExposedAndNoMore)
{
    bring_up(small(), small());
    const unsigned free_segments = info().free_segments;
    const uint64_t segment = info().segment_bytes;
    ASSERT_GE(free_segments, 200u);
    // A memory is at least 1 MiB, and 16 segments.
    std::vector<Memory> memories;
    std::vector<Memory> parts;
    uint64_t offset = 0;
    for (unsigned i = 0; i < free_segments; ++i) {
        if (i % 16 == 0)
            memories.push_back(alloc(16 * segment));
        const Memory part{static_cast<char *>(memories.back().address) + i % 16 * segment, segment};
        ASSERT_EQ(expose(part, &offset), 0) << i;
        parts.push_back(part);
    }
    memories.push_back(alloc(2 * segment));
    const Memory more{memories.back().address, segment};
    EXPECT_EQ(expose(more, &offset), -ENOSPC);
    EXPECT_EQ(info().free_segments, 0u);
    EXPECT_EQ(revoke(parts[7]), 0);
    EXPECT_EQ(revoke(parts[9]), 0);
    EXPECT_EQ(info().free_segments, 2u);
    EXPECT_EQ(info().longest_free, 1u);
    EXPECT_EQ(expose({more.address, 2 * segment}, &offset), -ENOSPC) << "not in a row";
    EXPECT_EQ(expose(more, &offset), 0);
    EXPECT_TRUE(arrives(more, offset, 0x61));
    // The device is closed with all of it exposed: nothing may be left behind.
}

TEST_P(Windows, AreSplit)
{
    bring_up(small(",split=2"), small());
    const rte_pmd_plx_ntb_memory_info i = info();
    EXPECT_EQ(i.parts, 4u);
    EXPECT_EQ(i.longest_free, 64u);
    const uint64_t part = i.window_bytes / 4;
    EXPECT_EQ(i.memory_bytes_max, part);
    const Memory a = alloc(part);
    const Memory b = alloc(mib);
    uint64_t at = 0;
    EXPECT_EQ(expose(a, &at, both, 0), -ENOSPC) << "the queue pairs are there";
    EXPECT_EQ(expose(a, &at, both, 4), -EINVAL) << "there are four";
    ASSERT_EQ(expose(a, &at), 0);
    EXPECT_EQ(at, part);
    ASSERT_EQ(expose(b, &at, both, 3), 0);
    EXPECT_EQ(at, 3 * part);
    EXPECT_TRUE(arrives(b, at, 0x71));
    rte_pmd_plx_ntb_memory_exposed found{};
    ASSERT_EQ(rte_pmd_plx_ntb_memory_find(id(), b.address, &found), 0);
    EXPECT_EQ(found.part, 3u);
    Memory none{};
    EXPECT_EQ(rte_pmd_plx_ntb_memory_alloc(id(), part + 1, &none), -EINVAL);
}

TEST_P(Windows, ABlockThatDoesNotFitItsWindowIsRefused)
{
    ASSERT_EQ(near().attach(cable(), patient + ",split=7"), 0);
    rte_pmd_plx_ntb_config config{};
    EXPECT_EQ(near().configure(config), -EINVAL) << "16 MiB in a 128th of 512 MiB";
    config.buffers = 256;
    config.ring_lines = 64;
    EXPECT_EQ(near().configure(config), 0);
    EXPECT_EQ(info().parts, 128u);
}

class WindowsOfAlut : public Windows
{
protected:
    void connect(const std::string &alut)
    {
        bring_up({.devargs = patient + ",alut=" + alut}, {.devargs = patient + ",alut=" + alut});
    }
};

TEST_P(WindowsOfAlut, OfHalfTheSizeHasLargerSegmentsOrFewer)
{
    connect("128");
    const rte_pmd_plx_ntb_memory_info i = info();
    EXPECT_EQ(i.segments, 128u);
    EXPECT_EQ(i.segment_bytes * i.segments, i.window_bytes);
    const Memory m = alloc(2 * mib);
    uint64_t offset = 0;
    ASSERT_EQ(expose(m, &offset), 0);
    EXPECT_TRUE(arrives(m, offset, 0x81));
    both_ways(stream(0, 5, 200, {8, 3000}));
}

TEST_P(WindowsOfAlut, ThatIsAbsentExposesNothing)
{
    connect("0");
    const rte_pmd_plx_ntb_memory_info i = info();
    EXPECT_EQ(i.translation, RTE_PMD_PLX_NTB_MEMORY_BASE_OFFSET);
    EXPECT_EQ(i.segments, 0u);
    EXPECT_EQ(i.segment_bytes, 0u);
    EXPECT_EQ(i.free_segments, 0u);
    EXPECT_EQ(i.memory_bytes_max, 0u);
    EXPECT_EQ(i.parts, 1u);
    rte_pmd_plx_ntb_memory_align align = {.size = sizeof(align)};
    ASSERT_EQ(rte_pmd_plx_ntb_memory_align_get(id(), 5 * mib, &align), 0);
    EXPECT_EQ(align.addr_align % (8 * mib), 0u) << "a power of two that holds it";
    EXPECT_EQ(align.size_align, align.addr_align);
    Memory m{};
    EXPECT_EQ(rte_pmd_plx_ntb_memory_alloc(id(), mib, &m), -ENOTSUP);
    uint64_t offset = 0;
    EXPECT_EQ(rte_pmd_plx_ntb_memory_expose(id(), &m, mib, both, any, &offset), -ENOTSUP);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_revoke(id(), &m, mib), -ENOENT);
    both_ways(stream(0, 5, 200, {8, 3000}));
    EXPECT_NE(far().attach(cable(), "alut=64"), 0);
}

TEST_P(WindowsOfAlut, ThatIsAbsentCannotBeSplit)
{
    EXPECT_EQ(near().attach(cable(), "alut=0,split=1"), -ENOTSUP);
}

TEST_P(Windows, BadCallsAreRefusedAndLoseNothing)
{
    uint64_t offset = 99;
    Memory m{};
    rte_pmd_plx_ntb_memory_exposed found{};
    rte_pmd_plx_ntb_window_view view{};
    rte_pmd_plx_ntb_memory_info i{};
    ASSERT_EQ(near().bring_up(cable(), usual()), 0);
    m = alloc(4 * mib);
    auto *const base = static_cast<char *>(m.address);
    EXPECT_EQ(expose(m, &offset), -ENOTCONN) << "before there is a peer";
    EXPECT_EQ(rte_pmd_plx_ntb_window_view_get(id(), 16 * mib, 8, &view), -ENOTCONN);
    ASSERT_EQ(far().bring_up(cable(), usual()), 0);
    await_connected(1);

    const struct {
        const char *what;
        void *address;
        size_t bytes;
        uint32_t rights;
        uint32_t window;
        int rc;
    } rows[] = {
        {"not a multiple of the segment", base, 2 * mib + 4096, both, any, -EINVAL},
        {"less than a segment", base, 8, both, any, -EINVAL},
        {"nothing", base, 0, both, any, -EINVAL},
        {"not on a segment", base + 4096, 2 * mib, both, any, -EINVAL},
        {"over the end", base + 2 * mib, 4 * mib, both, any, -EINVAL},
        {"wraps around", base, ~size_t{0} - mib + 1, both, any, -EINVAL},
        {"behind it", base + 4 * mib, 2 * mib, both, any, -EINVAL},
        {"of another device", &offset, 2 * mib, both, any, -EINVAL},
        {"without memory", nullptr, 2 * mib, both, any, -EINVAL},
        {"unknown rights", base, 2 * mib, 4, any, -EINVAL},
        {"no such window", base, 2 * mib, both, 1, -EINVAL},
    };
    for (const auto &row : rows)
        EXPECT_EQ(rte_pmd_plx_ntb_memory_expose(id(), row.address, row.bytes, row.rights,
                                                row.window, &offset),
                  row.rc)
            << row.what;
    EXPECT_EQ(offset, 99u);
    EXPECT_EQ(expose(m, nullptr), -EINVAL);
    EXPECT_EQ(revoke(m), -ENOENT) << "not exposed";
    EXPECT_EQ(revoke({nullptr, 2 * mib}), -ENOENT);
    EXPECT_EQ(find(m), -ENOENT);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_find(id(), base, nullptr), -EINVAL);

    Memory none{};
    EXPECT_EQ(rte_pmd_plx_ntb_memory_alloc(id(), 0, &none), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_alloc(id(), 512 * mib + 1, &none), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_alloc(id(), ~size_t{0}, &none), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_alloc(id(), mib, nullptr), -EINVAL);
    EXPECT_EQ(none.address, nullptr);

    i.size = sizeof(i) - 1;
    EXPECT_EQ(rte_pmd_plx_ntb_memory_info_get(id(), &i), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_info_get(id(), nullptr), -EINVAL);

    EXPECT_EQ(rte_pmd_plx_ntb_window_view_get(id(), 0, 8, &view), -EINVAL) << "its queue pairs";
    EXPECT_EQ(rte_pmd_plx_ntb_window_view_get(id(), 16 * mib - 8, 16, &view), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_window_view_get(id(), 512 * mib, 1, &view), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_window_view_get(id(), 512 * mib - 8, 16, &view), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_window_view_get(id(), 16 * mib, ~size_t{0}, &view), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_window_view_get(id(), 16 * mib, 0, &view), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_window_view_get(id(), 16 * mib, 8, nullptr), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_window_view_get(id(), 16 * mib, 496 * mib, &view), 0);
    EXPECT_NE(view.address, nullptr);

    EXPECT_EQ(rte_pmd_plx_ntb_memory_free(id(), base + 2 * mib), -ENOENT) << "not its start";
    EXPECT_EQ(rte_pmd_plx_ntb_memory_free(id(), nullptr), -ENOENT);
    ASSERT_EQ(expose(m, &offset), 0);
    EXPECT_EQ(expose(m, &offset), -EBUSY) << "twice";
    EXPECT_EQ(free(m), -EBUSY);
    EXPECT_EQ(revoke(m), 0);
    EXPECT_EQ(revoke(m), -ENOENT) << "twice";
    EXPECT_EQ(free(m), 0);
    EXPECT_EQ(free(m), -ENOENT) << "twice";
    EXPECT_EQ(info().free_segments, 248u) << "nothing is lost";

    EXPECT_EQ(rte_pmd_plx_ntb_memory_alloc(63, mib, &none), -ENODEV);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_free(63, base), -ENODEV);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_expose(63, base, mib, both, any, &offset), -ENODEV);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_revoke(63, base, mib), -ENODEV);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_find(63, base, &found), -ENODEV);
    EXPECT_EQ(rte_pmd_plx_ntb_window_view_get(63, 0, 8, &view), -ENODEV);
    EXPECT_EQ(rte_pmd_plx_ntb_memory_info_get(63, &i), -ENODEV);
}

// Every length around the steps of the copy, at every alignment of a word.
TEST_P(Windows, BytesAreStoredWhereTheyBelong)
{
    bring_up();
    const Answer exposed = far().ask(Op::expose, 2 * mib, uint64_t{both});
    ASSERT_EQ(exposed.rc, 0);
    rte_pmd_plx_ntb_window_store_fn store = nullptr;
    EXPECT_EQ(rte_pmd_plx_ntb_window_store_get(id(), nullptr), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_window_store_get(63, &store), -ENODEV);
    ASSERT_EQ(rte_pmd_plx_ntb_window_store_get(id(), &store), 0);
    rte_pmd_plx_ntb_window_writer *writer = nullptr;
    EXPECT_EQ(rte_pmd_plx_ntb_window_writer_create(id(), nullptr), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_window_writer_create(63, &writer), -ENODEV);
    ASSERT_EQ(rte_pmd_plx_ntb_window_writer_create(id(), &writer), 0);
    rte_pmd_plx_ntb_window_view view{};
    ASSERT_EQ(rte_pmd_plx_ntb_window_view_get(id(), exposed.value, 2 * mib, &view), 0);
    // Own memory shows what came, and what beside it did not change: the far host reads words.
    ASSERT_TRUE(
        near().store_until(exposed.value, 1, [&] { return far().ask(Op::word, 0).value == 1; }));
    std::vector<unsigned char> source(32768);
    std::vector<unsigned char> expected(32768);
    for (size_t i = 0; i < source.size(); ++i)
        source[i] = static_cast<unsigned char>(i * 7 + 1);
    size_t at = 64;
    for (const size_t bytes :
         {0u, 1u, 7u, 8u, 9u, 15u, 16u, 31u, 33u, 63u, 64u, 65u, 255u, 257u, 1279u, 1281u, 2500u}) {
        at += bytes % 3;
        store(static_cast<char *>(view.address) + at, source.data() + bytes % 5, bytes);
        std::memcpy(expected.data() + at, source.data() + bytes % 5, bytes);
        at += bytes + 1;
    }
    for (const size_t bytes : {1u, 64u, 4096u, 5000u, 8191u}) {
        at += bytes % 3;
        rte_pmd_plx_ntb_window_writer_store(writer, static_cast<char *>(view.address) + at,
                                            source.data() + bytes % 5, bytes);
        std::memcpy(expected.data() + at, source.data() + bytes % 5, bytes);
        at += bytes + 1;
    }
    rte_pmd_plx_ntb_window_writer_free(writer);
    for (size_t i = 64; i + 8 <= at + 64; i += 8) {
        uint64_t word;
        std::memcpy(&word, expected.data() + i, sizeof(word));
        ASSERT_EQ(far().ask(Op::word, i).value, word) << i;
    }
}

// A chip that does not answer may still let the peer through: nothing is given up before it does.
TEST_P(Windows, WhatIsNotKnownToBeRevokedStaysExposed)
{
    bring_up();
    const Memory m = alloc(2 * mib);
    uint64_t offset = 0;
    ASSERT_EQ(expose(m, &offset), 0);
    ASSERT_EQ(rte_pmd_plx_ntb_inject(id(), RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 1), 0);
    EXPECT_EQ(revoke(m), -EIO);
    EXPECT_EQ(find(m), 0);
    EXPECT_EQ(free(m), -EBUSY);
    EXPECT_NE(expose(alloc(2 * mib), &offset), 0);
    ASSERT_EQ(rte_pmd_plx_ntb_inject(id(), RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 0), 0);
    await_connected(2);
    EXPECT_EQ(find(m), -ENOENT);
    EXPECT_EQ(free(m), 0);
}

TEST_P(Windows, ClosedRegistersAreNeededForNothing)
{
    const HostSetup shut{.devargs = patient + ",peer_csr=closed"};
    if (near_beyond_link()) {
        EXPECT_EQ(near().attach(cable(), shut.devargs), -ENOTSUP) << "they are the peer's too";
        return;
    }
    bring_up(shut, shut);
    both_ways(stream(0, 11, 500, {8, 48, 300, 3000}));
    const Memory m = alloc(2 * mib);
    uint64_t offset = 0;
    ASSERT_EQ(expose(m, &offset), 0);
    EXPECT_TRUE(arrives(m, offset, 0x91));
    far().stop();
    ASSERT_TRUE(near().await_event('L'));
    ASSERT_EQ(far().restart(shut), 0);
    await_connected(2);
    both_ways(stream(0, 12, 500, {8, 48, 300, 3000}));
}

CONTRACT_EVERYWHERE(Windows);
CONTRACT_EVERYWHERE(WindowsOfAlut);

} // namespace
