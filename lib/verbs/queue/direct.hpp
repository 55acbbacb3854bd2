// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_QUEUE_DIRECT_HPP
#define NTB_VERBS_QUEUE_DIRECT_HPP

#include <cstddef>
#include <cstdint>

#include "ntbv.h"

namespace ntb::verbs
{
struct Opened;

/// What a queue pair knows of a region of its peer, by its key.
struct Direct {
    enum class State : std::uint8_t {
        Unknown,
        Asked,   // the peer has not answered, and need not
        Opening, // it has, and the port is asked for it
        Refused, // what it has granted cannot be used
        Open,
    };

    std::uint32_t key; // 0: nothing
    State state;
    std::uint8_t asked; // how often
    std::uint8_t rights;
    std::uint16_t serial;          // of the LEND that it comes from
    std::uint64_t address, length; // as the peer calls it
    std::byte *memory;             // here
    Opened *opened;

    /// Memory that a request may use. NULL: it goes by a message.
    std::byte *find(std::uint32_t wanted, std::uint64_t from, std::uint64_t bytes,
                    std::uint32_t right) const
    {
        const std::uint64_t offset = from - address;
        return key == wanted && state == State::Open && (rights & right) != 0 && offset <= length &&
                       bytes <= length - offset
                   ? memory + offset
                   : nullptr;
    }
};

/// A table of them, for each queue pair, and behind it those that the peer lends, where it says. A
/// region whose key falls to the place of another one takes its place.
constexpr std::uint32_t max_directs = 64, max_lent = 8, max_known = max_directs + max_lent;
constexpr std::uint32_t place_of_key(std::uint32_t key)
{
    return key >> 16 & (max_directs - 1);
}

/// The other way round: an own region from which a queue pair sends, as far as its peer has it.
struct Lent {
    enum class State : std::uint8_t {
        Said,   // the peer has not answered, and need not
        Mapped, // requests may go without their data
        Lacked, // it did not have what one of them was about
    };
    std::uint32_t key; // 0: none
    State state;
    bool was_used;        // since it was looked at for another region
    std::uint16_t serial; // of what was said of it
};

} // namespace ntb::verbs

#endif
