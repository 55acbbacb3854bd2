// SPDX-License-Identifier: BSD-3-Clause
#include "transport/payload.hpp"

#include <algorithm>
#include <cstring>

#include <rte_mbuf.h>

#include "transport/sending.hpp"
#include "wire/one_sided.hpp"

namespace ntbmsg
{

namespace
{

/// Walks the pieces of an operation, starting at one of its bytes.
class Walk
{
public:
    Walk(const ntbmsg_sge *pieces, uint32_t mask, uint32_t first, uint32_t at)
        : pieces_(pieces), mask_(mask), piece_(first), at_(at)
    {
    }
    /// Bytes left in the present piece. Only valid while bytes of the operation are left: the ring
    /// entries after its last piece may be in use by another thread.
    uint32_t room()
    {
        skip();
        return now().bytes - at_;
    }
    /// Their address; after a call of room().
    std::byte *place() const { return static_cast<std::byte *>(now().address) + at_; }
    void pass(uint32_t bytes) { at_ += bytes; }

private:
    const ntbmsg_sge &now() const { return pieces_[piece_ & mask_]; }
    /// Skips pieces that are used up.
    void skip()
    {
        for (unsigned passed = 0; passed < NTBMSG_MAX_SGES && at_ >= now().bytes; ++passed) {
            at_ -= now().bytes;
            ++piece_;
        }
    }

    const ntbmsg_sge *pieces_;
    const uint32_t mask_;
    uint32_t piece_;
    uint32_t at_;
};

/// The segment to be filled next, with tailroom. @return NULL: the pool is empty
rte_mbuf *segment_with_room(Worker &w, rte_mbuf *m)
{
    rte_mbuf *last = rte_pktmbuf_lastseg(m);
    if (rte_pktmbuf_tailroom(last) != 0)
        return last;
    rte_mbuf *more = rte_pktmbuf_alloc(w.op_pool);
    if (more == nullptr)
        return nullptr;
    last->next = more;
    ++m->nb_segs;
    return more;
}

} // namespace

uint32_t chunk_of(const Worker &w)
{
    return std::min<uint32_t>(protocol::chunk_bytes,
                              w.peer_max_message -
                                  static_cast<uint32_t>(sizeof(protocol::Request)));
}

rte_mbuf *payload_begin(Worker &w, const void *from, uint32_t bytes)
{
    rte_mbuf *m = rte_pktmbuf_alloc(w.op_pool);
    if (m != nullptr)
        std::memcpy(rte_pktmbuf_append(m, static_cast<uint16_t>(bytes)), from, bytes);
    return m;
}

bool payload_append(Worker &w, rte_mbuf *m, const void *from, uint32_t bytes)
{
    const auto *source = static_cast<const std::byte *>(from);
    while (bytes > 0) {
        rte_mbuf *segment = segment_with_room(w, m);
        if (segment == nullptr)
            return false;
        const uint32_t n = std::min<uint32_t>(bytes, rte_pktmbuf_tailroom(segment));
        std::memcpy(rte_pktmbuf_mtod_offset(segment, std::byte *, segment->data_len), source, n);
        segment->data_len = static_cast<uint16_t>(segment->data_len + n);
        m->pkt_len += n;
        source += n;
        bytes -= n;
    }
    return true;
}

bool payload_gather(Worker &w, rte_mbuf *m, const ntbmsg_sge *pieces, uint32_t mask, uint32_t first,
                    uint32_t at, uint32_t bytes)
{
    for (Walk walk(pieces, mask, first, at); bytes > 0;) {
        const uint32_t n = std::min(bytes, walk.room());
        if (!payload_append(w, m, walk.place(), n))
            return false;
        walk.pass(n);
        bytes -= n;
    }
    return true;
}

void payload_scatter(const rte_mbuf *m, const ntbmsg_sge *pieces, uint32_t mask, uint32_t first,
                     uint32_t at)
{
    Walk walk(pieces, mask, first, at);
    uint32_t left = m->pkt_len;
    for (uint32_t from = 0; left > 0;) {
        const uint32_t n = std::min(left, walk.room());
        payload_copy(m, from, walk.place(), n);
        walk.pass(n);
        from += n;
        left -= n;
    }
}

void payload_copy(const rte_mbuf *m, uint32_t at, void *to, uint32_t bytes)
{
    auto *place = static_cast<std::byte *>(to);
    for (; m != nullptr && bytes > 0; m = m->next) {
        if (at >= m->data_len) {
            at -= m->data_len;
            continue;
        }
        const uint32_t n = std::min<uint32_t>(bytes, m->data_len - at);
        std::memcpy(place, rte_pktmbuf_mtod_offset(m, const std::byte *, at), n);
        place += n;
        bytes -= n;
        at = 0;
    }
}

bool payload_read(const rte_mbuf *m, void *to, uint32_t bytes)
{
    if (m->pkt_len < bytes)
        return false;
    payload_copy(m, 0, to, bytes);
    return true;
}

bool send_held(Worker &w, Channel &c, Held &held)
{
    if (held.mbuf == nullptr)
        return true;
    if (send_op(w, c, held.op, held.argument, held.mbuf) != 0)
        return false;
    held = {};
    return true;
}

void hold_or_send(Worker &w, Channel &c, Held &held, uint8_t op, uint32_t argument, rte_mbuf *m)
{
    held = {m, argument, op};
    send_held(w, c, held);
}

} // namespace ntbmsg
