// SPDX-License-Identifier: BSD-3-Clause
// Messages of the two ends of a channel about one-sided operations on it.
#ifndef PKTGEN_TRANSPORT_NOTE_HPP
#define PKTGEN_TRANSPORT_NOTE_HPP

#include <cstdint>
#include <optional>

#include <ntbmsg.h>

#include "transport/channels.hpp"

struct rte_mempool;

namespace pktgen
{

struct Note {
    enum Kind : uint32_t {
        token,   ///< here is memory
        look,    ///< these writes are done: look at them
        checked, ///< looked at
    };
    uint32_t kind;
    uint32_t count;  ///< look: of writes
    uint64_t number; ///< look: of the first write; checked: of the next one
    ntbmsg_region_token memory;
};

/// @return false: not now
bool send_note(const ChannelLane &lane, rte_mempool *pool, const Note &note);
/// The next one; polls the worker. Other messages are dropped.
std::optional<Note> take_note(const ChannelLane &lane);

} // namespace pktgen

#endif
