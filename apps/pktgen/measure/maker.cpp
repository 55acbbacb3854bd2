// SPDX-License-Identifier: BSD-3-Clause
#include "measure/maker.hpp"

#include <cstring>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "mbufs.hpp"
#include "traffic/payload.hpp"

namespace pktgen
{

uint32_t segment_room(rte_mempool *pool)
{
    return (rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM) / line_bytes * line_bytes;
}

Maker::Maker(rte_mempool *pool, const Point &point, Sizes sizes, const Packets *packets)
    : pool_(pool), room_(segment_room(pool)), verify_(point.verify), packets_(packets),
      sizes_(std::move(sizes)), plain_(sizes_.fixed() && sizes_.largest() <= room_ && !verify_ &&
                                       packets_ == nullptr && point.pattern == Pattern::counter),
      segments_((sizes_.largest() - 1) / room_ + 1), content_(point.pattern)
{
}

uint16_t Maker::make(Staged &into, uint16_t n, uint64_t number, Sent &sent)
{
    into.begin = into.end = 0;
    const bool single = segments_.size() == 1;
    if (single && rte_pktmbuf_alloc_bulk(pool_, into.messages.data(), n) != 0)
        return 0;
    if (plain_) {
        make_plain(into, n, number, sent);
        return n;
    }
    for (uint16_t i = 0; i < n; ++i) {
        rte_mbuf *&message = into.messages[i];
        if (single)
            message->pkt_len = message->data_len = static_cast<uint16_t>(sizes_.size());
        else if (!take_chain(message, sizes_.size()))
            break;
        finish(message, into.meta[i], number + i, sent);
        into.end = static_cast<uint16_t>(i + 1);
    }
    return into.end;
}

/// Without the questions that the others have to be asked for each message: a seventh of the rate
/// of 64-byte messages.
void Maker::make_plain(Staged &into, uint16_t n, uint64_t number, Sent &sent) const
{
    const uint32_t size = sizes_.size();
    uint64_t sum = 0;
    for (uint16_t i = 0; i < n; ++i) {
        rte_mbuf *message = into.messages[i];
        message->pkt_len = size;
        message->data_len = static_cast<uint16_t>(size);
        fill_words(rte_pktmbuf_mtod(message, std::byte *), size, number + i);
        sum += expected_sum(size, number + i);
    }
    sent.messages += n;
    sent.bytes += uint64_t{n} * size;
    sent.sum += sum;
    into.end = n;
}

bool Maker::take_chain(rte_mbuf *&message, uint32_t size)
{
    const uint32_t pieces = (size - 1) / room_ + 1;
    if (rte_pktmbuf_alloc_bulk(pool_, segments_.data(), pieces) != 0)
        return false;
    message = measure::link_chain(segments_.data(), pieces, room_, size);
    return true;
}

void Maker::finish(rte_mbuf *message, ntbmsg_meta &meta, uint64_t number, Sent &sent)
{
    size_t done = 0;
    for (rte_mbuf *segment = message; segment != nullptr; segment = segment->next) {
        fill(rte_pktmbuf_mtod(segment, std::byte *), segment->data_len, done, number);
        done += segment->data_len;
    }
    if (verify_)
        meta = {stamp_of(crc_of(message), number), 0, 0};
    ++sent.messages;
    sent.bytes += message->pkt_len;
    sent.sum += expected_sum(message->pkt_len, number);
    sizes_.advance();
}

void Maker::fill(std::byte *at, size_t bytes, size_t done, uint64_t number) const
{
    if (packets_ != nullptr)
        std::memcpy(at, packets_->data(sizes_.index()).data() + done, bytes);
    else
        content_.fill(at, bytes, done, number);
}

} // namespace pktgen
