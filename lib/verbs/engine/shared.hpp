// SPDX-License-Identifier: BSD-3-Clause
// Memory that an engine and its peers both map: decision 042.
#ifndef NTB_VERBS_ENGINE_SHARED_HPP
#define NTB_VERBS_ENGINE_SHARED_HPP

#include <atomic>
#include <cstdint>
#include <memory>

#include "memory/pages.hpp"
#include "ntbv.h"
#include "port/segment.hpp"
#include "queue/hook.hpp"

namespace ntb::verbs
{
struct Link;

/// Behind the pages of a region its segment has one more, which begins with a word: not zero while
/// the region is registered. Its owner stores it, and the peer looks at it. Where the owner dies
/// its daemon takes the pages away, so that the word is zero as well.
inline std::atomic_ref<std::uint64_t> registered_word(const Segment &segment)
{
    return std::atomic_ref(
        *reinterpret_cast<std::uint64_t *>(segment.data() + segment.bytes() - page));
}

/// A region of this engine whose pages are a segment's.
struct Shared {
    /// By which peers open it, read only and writable. 0: not granted; Port::later: not yet.
    struct Given {
        std::uint64_t number[2];
        bool refused[2]; // the port does not grant it
    };

    Hook<Shared> all{this}; // in Engine::shared_
    std::byte *memory = nullptr;
    std::uint64_t bytes = 0;
    std::shared_ptr<Segment> segment;
    Given given[NTBV_MAX_LINKS] = {};
};

/// A segment of a peer that is mapped here.
struct Opened {
    std::shared_ptr<Segment> segment;
    bool is_asked_for = false; // the port has not answered; with neither the place is free
    const Link *link = nullptr;
    std::uint64_t number = 0;
    std::uint32_t users = 0; // entries of queue pairs
    bool writable = false;
    bool is_lent = false; // was opened because the peer lends it
};

} // namespace ntb::verbs

#endif
