// SPDX-License-Identifier: BSD-3-Clause
// A model of the memory between two hosts. Stores are torn into their aligned 8-byte words, wait,
// and arrive in any order that the kind of memory allows; the reader sees what has arrived and
// nothing else. One seed is one order.
#ifndef TEST_QUEUE_CHECKED_MEM_HPP
#define TEST_QUEUE_CHECKED_MEM_HPP

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>

#include "late_engine.hpp"
#include "queue/mem_policy.hpp"

namespace test_queue
{

class MemModel
{
public:
    /// What a test takes away of the order of stores, to see that it is missed. Not as policies
    /// of their own: each policy is a compiled hot path.
    enum class Breach {
        none,
        release,            ///< a word does not wait for what was stored before it
        body_fence,         ///< nor for the fence behind a body
        non_temporal_fence, ///< nor for the one behind non-temporal stores
    };

private:
    struct Store {
        std::byte *at; ///< inside one aligned word
        uint8_t bytes;
        bool release;    ///< arrives after everything that was stored before it
        bool weak;       ///< ... but these: non-temporal
        unsigned fences; ///< fences before it
        std::byte data[64];
    };
    std::deque<Store> waiting_; ///< hundreds, of which one near the front goes at a time
    std::mt19937 random_;
    unsigned fences_ = 0;
    const Breach breach_;

    static uintptr_t word_of(const Store &s) { return reinterpret_cast<uintptr_t>(s.at) / 8; }
    static bool overlap(const Store &a, const Store &b)
    {
        return a.at < b.at + b.bytes && b.at < a.at + a.bytes;
    }
    /// May store i arrive now, with all before it still waiting?
    bool may_arrive(size_t i) const
    {
        const Store &store = waiting_[i];
        const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(i);
        return std::none_of(waiting_.begin(), end, [&store](const Store &before) {
            return (store.release && !before.weak) || before.fences < store.fences ||
                   overlap(before, store);
        });
    }
    void arrive(size_t i)
    {
        const Store s = waiting_[i];
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
        std::memcpy(s.at, s.data, s.bytes);
    }

public:
    /// The model that stores go to; the policies are stateless.
    static inline MemModel *current;
    /// Moves along, unordered against the CPU's stores.
    LateEngine *engine = nullptr;

    explicit MemModel(unsigned seed, Breach breach = Breach::none) : random_(seed), breach_(breach)
    {
        current = this;
    }
    ~MemModel() { current = nullptr; }
    MemModel(const MemModel &) = delete;
    MemModel &operator=(const MemModel &) = delete;

    uint32_t random() { return static_cast<uint32_t>(random_()); }
    void store(std::byte *to, const std::byte *from, size_t n, bool weak = false)
    {
        while (n > 0) {
            const size_t room = 8 - reinterpret_cast<uintptr_t>(to) % 8;
            const size_t now = n < room ? n : room;
            Store s{to, static_cast<uint8_t>(now), false, weak, fences_, {}};
            std::memcpy(s.data, from, now);
            waiting_.push_back(s);
            to += now, from += now, n -= now;
        }
    }
    void word(std::byte *to, uint64_t w, bool release)
    {
        Store s{to, 8, release && breach_ != Breach::release, false, fences_, {}};
        std::memcpy(s.data, &w, sizeof(w));
        waiting_.push_back(s);
    }
    void line(std::byte *to, const std::byte *from)
    {
        Store s{to, 64, false, false, fences_, {}};
        std::memcpy(s.data, from, 64);
        waiting_.push_back(s);
    }
    /// @param kind the breach that would take this fence away
    void fence(Breach kind = Breach::none)
    {
        if (kind == Breach::none || kind != breach_)
            fences_++;
    }
    /// Lets up to @p n stores arrive, each chosen among the oldest few that may; and as much of the
    /// engine's work.
    void step(unsigned n)
    {
        if (engine != nullptr)
            engine->step(random() % (n + 1));
        while (n-- > 0 && !waiting_.empty()) {
            const size_t i = random() % std::min<size_t>(waiting_.size(), 48);
            if (may_arrive(i))
                arrive(i);
        }
    }
    void all_arrive()
    {
        while (!waiting_.empty())
            arrive(0);
    }
};

/// What both kinds of checked memory share. A reader's look lets a little more arrive first, so
/// memory changes under it between any two of its looks.
struct CheckedBase {
    using Body = plx::queue::PLX_VARIANT::Body;
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
    static void rest(std::byte *to, const std::byte *from, uint32_t n, uint64_t w)
    {
        MemModel::current->word(to, w, false);
        copy(to + 8, from, n);
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
