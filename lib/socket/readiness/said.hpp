// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_READINESS_SAID_HPP
#define NTB_SOCKET_READINESS_SAID_HPP

#include <atomic>
#include <cstdint>

namespace ntb::socket
{

/// What a program last said of the members of a set, in memory that its children share: a child
/// that begins to use the set goes by it, also where the process that said it makes no call any
/// more. Zeroed memory is one that knows of nothing. One process writes, one thread of it at a
/// time; others read.
class Said
{
public:
    struct Word {
        std::uint32_t events;
        std::uint64_t data;
        bool off;     ///< one-shot, reported
        bool removed; ///< the kernel may still have the library's entry
    };
    /// Nothing is kept of links with a higher index.
    static constexpr std::uint32_t most = 65536;

    /// A full fence: who has not read this yet is seen by a load behind it.
    void say(std::uint32_t index, std::uint16_t generation, const Word &word)
    {
        any_.store(true, std::memory_order_relaxed);
        if (index >= most)
            return;
        Slot &slot = slots_[index];
        const std::uint32_t version = slot.version.load(std::memory_order_relaxed) | 1;
        slot.version.store(version, std::memory_order_relaxed);
        // Who reads a new part by find() sees the odd version, or a later one. By each part's own
        // order and not by a fence, which the thread sanitizer does not know.
        slot.key.store(key(generation) | (word.off ? off : 0) | (word.removed ? removed : 0),
                       std::memory_order_release);
        slot.events.store(word.events, std::memory_order_release);
        slot.data.store(word.data, std::memory_order_release);
        slot.version.store(version + 1, std::memory_order_seq_cst);
    }
    /// @retval false nothing was said of it since the start, or since forget(), or it is just being
    ///         said
    bool find(std::uint32_t index, std::uint16_t generation, Word &word) const
    {
        if (index >= most)
            return false;
        const Slot &slot = slots_[index];
        const std::uint32_t version = slot.version.load(std::memory_order_seq_cst);
        const std::uint32_t now = slot.key.load(std::memory_order_acquire);
        if ((version & 1) != 0 || (now & ~(off | removed)) != key(generation))
            return false;
        word = {slot.events.load(std::memory_order_acquire),
                slot.data.load(std::memory_order_acquire), (now & off) != 0, (now & removed) != 0};
        return slot.version.load(std::memory_order_relaxed) == version;
    }
    /// Whether anything was said.
    bool any() const { return any_.load(std::memory_order_relaxed); }
    /// No other process has it: links have other meanings from now on.
    void forget()
    {
        era_.store(era_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        any_.store(false, std::memory_order_relaxed);
    }

private:
    static constexpr std::uint32_t off = std::uint32_t{1} << 16, removed = std::uint32_t{1} << 17;
    static constexpr unsigned era_shift = 18;

    /// Never 0.
    std::uint32_t key(std::uint16_t generation) const
    {
        const std::uint32_t era = era_.load(std::memory_order_relaxed);
        return ((era % ((1u << (32 - era_shift)) - 1) + 1) << era_shift) | generation;
    }

    struct Slot {
        std::atomic<std::uint32_t> version; ///< odd: it is being written
        std::atomic<std::uint32_t> key, events;
        std::atomic<std::uint64_t> data;
    };
    std::atomic<std::uint32_t> era_;
    std::atomic<bool> any_;
    Slot slots_[most];
};

} // namespace ntb::socket

#endif
