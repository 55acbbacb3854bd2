// SPDX-License-Identifier: BSD-3-Clause
// In place of the engine's own: what it stores to memory that somebody polls goes into a model,
// where it waits and arrives in any order that the calls allow. Without a model it is there at
// once.
#ifndef NTB_TEST_VERBS_CHECKED_PEER_MEMORY_HPP
#define NTB_TEST_VERBS_CHECKED_PEER_MEMORY_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "../../../support/mem_model.hpp"

namespace ntb::verbs
{

struct PeerMemory {
    using Model = ntb_test::MemModel;

    /// Who looks at the memory while the engine waits for its barrier.
    static inline std::function<void()> look;
    /// A test's, to see that it is missed.
    static inline bool has_barrier = true;

    static void copy(std::byte *to, const std::byte *from, std::size_t bytes)
    {
        if (Model::current)
            Model::current->store(to, from, bytes);
        else
            std::memcpy(to, from, bytes);
    }
    template <typename Word>
    static void release(std::byte *to, Word word)
    {
        const auto *const bytes = reinterpret_cast<const std::byte *>(&word);
        if (Model::current)
            Model::current->part_of_word(to, bytes, sizeof(word), true);
        else
            std::memcpy(to, bytes, sizeof(word));
    }
    static void barrier(std::atomic<std::uint32_t> &)
    {
        if (Model::current && has_barrier)
            Model::current->all_arrive([] {
                if (look)
                    look();
            });
    }
};

} // namespace ntb::verbs

#endif
