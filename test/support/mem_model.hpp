// SPDX-License-Identifier: BSD-3-Clause
// A model of memory that somebody else looks at. Stores are torn into their aligned 8-byte words,
// wait, and arrive in any order that the kind of memory allows; the reader sees what has arrived
// and nothing else. One seed is one order.
#ifndef TEST_SUPPORT_MEM_MODEL_HPP
#define TEST_SUPPORT_MEM_MODEL_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <random>

namespace ntb_test
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
    /// Moves along, unordered against the CPU's stores: up to so many steps.
    std::function<void(unsigned)> beside;

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
        part_of_word(to, reinterpret_cast<const std::byte *>(&w), sizeof(w), release);
    }
    /// @param n  bytes, inside one aligned word
    void part_of_word(std::byte *to, const std::byte *from, size_t n, bool release)
    {
        Store s{to, static_cast<uint8_t>(n), release && breach_ != Breach::release, false, fences_,
                {}};
        std::memcpy(s.data, from, n);
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
    /// Lets up to @p n stores arrive, each chosen among the oldest few that may; and as much of
    /// what moves beside them.
    void step(unsigned n)
    {
        if (beside)
            beside(random() % (n + 1));
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
    /// One after the other, in an order that may be, and behind each of them somebody looks.
    template <typename Look>
    void all_arrive(Look look)
    {
        while (!waiting_.empty()) {
            step(1);
            look();
        }
    }
};

} // namespace ntb_test

#endif
