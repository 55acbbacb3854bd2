// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_ENGINE_PLACE_HPP
#define NTB_VERBS_ENGINE_PLACE_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ntb::verbs
{

/// Of a write whose last bytes somebody polls: they are stored behind all others.
inline void place(std::byte *to, const std::byte *from, std::uint32_t bytes)
{
    const auto end = reinterpret_cast<std::uintptr_t>(to) + bytes;
    const auto store = [&](auto word) {
        std::memcpy(to, from, bytes - sizeof(word));
        std::memcpy(&word, from + bytes - sizeof(word), sizeof(word));
        std::atomic_ref(*reinterpret_cast<decltype(word) *>(end - sizeof(word)))
            .store(word, std::memory_order_release);
    };
    if (bytes >= 8 && end % 8 == 0)
        store(std::uint64_t{0});
    else if (bytes >= 4 && end % 4 == 0)
        store(std::uint32_t{0});
    else if (bytes != 0)
        store(std::uint8_t{0});
}

} // namespace ntb::verbs

#endif
