// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_ENGINE_PLACE_HPP
#define NTB_VERBS_ENGINE_PLACE_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/peer_memory.hpp"

namespace ntb::verbs
{

/// Of a write whose last bytes somebody polls: they are stored behind all others. Those are the
/// word that it ends with, of 8 or 4 bytes if it is aligned, else its last byte.
inline void place(std::byte *to, const std::byte *from, std::uint32_t bytes)
{
    std::byte *const end = to + bytes;
    const auto store = [&](auto word) {
        PeerMemory::copy(to, from, bytes - sizeof(word));
        std::memcpy(&word, from + bytes - sizeof(word), sizeof(word));
        PeerMemory::release(end - sizeof(word), word);
    };
    const auto address = reinterpret_cast<std::uintptr_t>(end);
    if (bytes >= 8 && address % 8 == 0)
        store(std::uint64_t{0});
    else if (bytes >= 4 && address % 4 == 0)
        store(std::uint32_t{0});
    else if (bytes != 0)
        store(std::uint8_t{0});
}

} // namespace ntb::verbs

#endif
