// SPDX-License-Identifier: BSD-3-Clause
#include "channel/in_place.hpp"

#include <algorithm>
#include <cerrno>

#include "wire/protocol.hpp"

namespace ntbmsg
{

namespace
{

/// @param counted  set to those of the receive buffers that count: of long messages
/// @return receive buffers that the messages take; a negative errno: they do not fit
int buffers_of(const Channel &c, const uint32_t *lengths, unsigned n, uint32_t &counted)
{
    const Worker &w = *c.worker;
    uint32_t buffers = 0;
    counted = 0;
    for (unsigned i = 0; i < n; ++i) {
        if (lengths[i] == 0)
            return -EINVAL;
        if (lengths[i] > c.longest)
            return -EMSGSIZE;
        const uint32_t used = w.peer_buffers.of(lengths[i]);
        buffers += used;
        if (lengths[i] > w.inline_max)
            counted += used;
        if (buffers > w.rooms)
            return -EINVAL;
    }
    return static_cast<int>(buffers);
}

/// Publishes them, in portions of a burst. They fit. @return 0; -ECONNRESET
int publish(Channel &c, const uint32_t *lengths, const uint32_t *imm, unsigned n)
{
    const Worker &w = *c.worker;
    Meta meta[burst_max];
    for (unsigned done = 0; done < n;) {
        const unsigned now = std::min(n - done, burst_max);
        for (unsigned i = 0; i < now; ++i)
            meta[i] = {protocol::header(c.tx_word, imm != nullptr ? imm[done + i] : 0), 0, 0};
        if (w.room_calls->commit(w.burst.tx_queue, lengths + done, meta,
                                 static_cast<uint16_t>(now)) < 0)
            return -ECONNRESET;
        done += now;
    }
    return 0;
}

} // namespace

int reserve_rooms(Channel &c, ntbmsg_room *rooms, unsigned n)
{
    Worker &w = *c.worker;
    if (w.builder != nullptr)
        return -EBUSY;
    const uint32_t most = std::min({n, c.tx.now.messages, c.tx.now.buffers});
    int got = 0;
    if (most != 0)
        got =
            w.room_calls->reserve(w.burst.tx_queue, reinterpret_cast<rte_pmd_plx_ntb_room *>(rooms),
                                  static_cast<uint16_t>(most));
    if (got > 0) {
        w.builder = &c;
        w.rooms = static_cast<uint32_t>(got);
        c.tx.set_aside(w.rooms);
    }
    return got;
}

int commit_rooms(Channel &c, const uint32_t *lengths, const uint32_t *imm, unsigned n)
{
    Worker &w = *c.worker;
    if (w.builder != &c)
        return n == 0 ? 0 : -EINVAL;
    uint32_t counted = 0;
    const int rc = buffers_of(c, lengths, n, counted);
    if (rc < 0)
        return rc;
    if (publish(c, lengths, imm, n) != 0) {
        abort_rooms(c);
        return -ECONNRESET;
    }
    const auto buffers = static_cast<uint32_t>(rc);
    c.tx.cancel(buffers, true);
    c.tx.sent({n, counted});
    c.tx_messages.add(n);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < n; ++i)
        bytes += lengths[i];
    c.tx_bytes.add(bytes);
    w.rooms -= buffers;
    if (w.rooms == 0)
        w.builder = nullptr;
    return static_cast<int>(n);
}

void abort_rooms(Channel &c)
{
    Worker &w = *c.worker;
    if (w.builder != &c)
        return;
    w.room_calls->abort(w.burst.tx_queue);
    c.tx.cancel(w.rooms, may_send(state_of(c)));
    w.builder = nullptr;
    w.rooms = 0;
}

} // namespace ntbmsg
