// SPDX-License-Identifier: BSD-3-Clause
// The model of the memory between two hosts as policies of the queue code.
#ifndef TEST_QUEUE_CHECKED_MEM_HPP
#define TEST_QUEUE_CHECKED_MEM_HPP

#include <cstring>

#include "../../../support/mem_model.hpp"
#include "late_engine.hpp"
#include "queue/mem_policy.hpp"

namespace test_queue
{

using ntb_test::MemModel;

/// What both kinds of checked memory share. A reader's look lets a little more arrive first, so
/// memory changes under it between any two of its looks.
struct CheckedBase {
    using Body = plx::queue::PLX_VARIANT::Body;
    using LineBegin = plx::queue::PLX_VARIANT::LineBegin;
    using Rest = plx::queue::PLX_VARIANT::Rest;
    using Order = plx::queue::PLX_VARIANT::Order;
    static void copy(std::byte *to, const std::byte *from, size_t n)
    {
        MemModel::current->store(to, from, n);
    }
    static void body(std::byte *line, const Body &b)
    {
        alignas(64) std::byte whole[64];
        b.store(whole);
        copy(line + 8, whole + 8, 56);
    }
    static void stream(std::byte *to, const std::byte *from, size_t n, const std::byte *)
    {
        copy(to, from, n);
    }
    static void non_temporal(std::byte *to, const std::byte *from, size_t n)
    {
        MemModel::current->store(to, from, n, true);
    }
    static void non_temporal_fence()
    {
        MemModel::current->fence(MemModel::Breach::non_temporal_fence);
    }
    static void head(std::byte *to, const Body &b, uint64_t w)
    {
        MemModel::current->word(to, w, false);
        body(to, b);
    }
    static void full_head(std::byte *to, const LineBegin &begin, const std::byte *from)
    {
        head(to, Body(begin.meta(), from, plx::wire::head_payload_bytes), begin.word());
    }
    static void rest(std::byte *to, const std::byte *from, Rest rest, uint64_t w)
    {
        MemModel::current->word(to, w, false);
        copy(to + 8, from, rest.bytes());
    }
    static void own(const std::byte *) {}
    static void own_later(const std::byte *, size_t) {}
    static void flush() {}
    static uint64_t load(const std::byte *from)
    {
        MemModel::current->step(MemModel::current->random() % 3);
        uint64_t w;
        std::memcpy(&w, from, sizeof(w));
        return w;
    }
    static bool is(const std::byte *from, uint64_t w) { return load(from) == w; }
};

/// Coherent memory: a word is a store-release, everything else may be late.
struct CheckedPlain : CheckedBase {
    static constexpr Order order = Order::release;
    static void body_fence() {}
    static void word(std::byte *to, uint64_t w) { MemModel::current->word(to, w, true); }
    static void line(std::byte *to, const std::byte *from)
    {
        plx::queue::PLX_VARIANT::body_then_word<CheckedPlain>(to, from);
    }
};

/// Write-combining: only a fence orders.
struct CheckedWriteCombining : CheckedBase {
    static constexpr Order order = Order::fence;
    static void body_fence() { MemModel::current->fence(MemModel::Breach::body_fence); }
    static void word(std::byte *to, uint64_t w) { MemModel::current->word(to, w, false); }
    static void line(std::byte *to, const std::byte *from)
    {
        plx::queue::PLX_VARIANT::body_then_word<CheckedWriteCombining>(to, from);
    }
    static void flush() { MemModel::current->fence(); }
};

/// Write-combining with whole-line stores.
struct CheckedDirectStore : CheckedWriteCombining {
    static constexpr Order order = Order::whole_line;
    static void line(std::byte *to, const std::byte *from) { MemModel::current->line(to, from); }
};

} // namespace test_queue

#endif
