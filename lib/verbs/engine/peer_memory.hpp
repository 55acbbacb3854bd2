// SPDX-License-Identifier: BSD-3-Clause
// How the engine stores to memory that somebody else polls. A test builds the engine with one of
// its own in place of this file: what is stored there arrives late, in any order that is allowed
// here.
#ifndef NTB_VERBS_ENGINE_PEER_MEMORY_HPP
#define NTB_VERBS_ENGINE_PEER_MEMORY_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ntb::verbs
{

struct PeerMemory {
    /// In any order.
    static void copy(std::byte *to, const std::byte *from, std::size_t bytes)
    {
        std::memcpy(to, from, bytes);
    }
    /// Behind all that was stored before. @param to  aligned as the word
    template <typename Word>
    static void release(std::byte *to, Word word)
    {
        std::atomic_ref(*reinterpret_cast<Word *>(to)).store(word, std::memory_order_release);
    }
    /// What was stored is there before anything is stored or loaded from now on.
    /// @param word  that is nothing but this: of a fence the thread sanitizer knows nothing
    static void barrier(std::atomic<std::uint32_t> &word)
    {
        word.exchange(0, std::memory_order_seq_cst);
    }
};

} // namespace ntb::verbs

#endif
