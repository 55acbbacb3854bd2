// SPDX-License-Identifier: BSD-3-Clause
#include "lane.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <rte_ethdev.h>

namespace net
{

namespace
{

/// What the kernel may leave to the peer's one, and is asked for by TUNSETOFFLOAD.
bool is_plain(const OffloadHeader &header)
{
    return (header.flags & OffloadHeader::needs_checksum) == 0 &&
           header.kind == OffloadHeader::one_segment;
}

} // namespace

Lane::Lane(State &state, const Interface &interface, uint16_t port, uint16_t queue,
           rte_mempool *pool)
    : state_(state), interface_(interface), port_(port), queue_(queue), pool_(pool),
      room_(uint32_t{rte_pktmbuf_data_room_size(pool)} - RTE_PKTMBUF_HEADROOM),
      spares_((longest_frame + room_ - 1) / room_, nullptr)
{
}

Lane::~Lane()
{
    rte_pktmbuf_free_bulk(waiting_.data() + first_, last_ - first_);
    for (rte_mbuf *spare : spares_)
        rte_pktmbuf_free(spare);
}

int Lane::kernel() const
{
    return interface_.queue(used_by_kernel() ? queue_ : 0);
}

bool Lane::fill_spares()
{
    for (rte_mbuf *&spare : spares_)
        if (spare == nullptr && (spare = rte_pktmbuf_alloc(pool_)) == nullptr)
            return false;
    return true;
}

/// Reads with room for a tag behind the addresses; where none is needed, the addresses move up.
Lane::Read Lane::read_frame(rte_mbuf **frame)
{
    if (!fill_spares())
        return Read::nothing;
    OffloadHeader header;
    auto *head = rte_pktmbuf_mtod(spares_[0], uint8_t *);
    std::array<iovec, segments_max> parts;
    unsigned n = 0;
    parts[n++] = {&header, sizeof(header)};
    parts[n++] = {head, addresses_bytes};
    parts[n++] = {head + addresses_bytes + tag_bytes, room_ - addresses_bytes - tag_bytes};
    for (size_t i = 1; i < spares_.size(); ++i)
        parts[n++] = {rte_pktmbuf_mtod(spares_[i], void *), room_};
    const ssize_t got = readv(interface_.queue(queue_), parts.data(), static_cast<int>(n));
    if (got < 0)
        return errno == EFAULT || errno == EINVAL ? Read::dropped : Read::nothing;
    if (static_cast<size_t>(got) < sizeof(header) + RTE_ETHER_HDR_LEN)
        return Read::dropped;
    const bool plain = is_plain(header);
    // The peer may have gone since the kernel was informed that there is one that takes it.
    if (!plain && !state_.offloads.load(std::memory_order_relaxed))
        return Read::dropped;
    uint32_t left = static_cast<uint32_t>(got - static_cast<ssize_t>(sizeof(header)) +
                                          static_cast<ssize_t>(tag_bytes));
    rte_mbuf *first = spares_[0], *tail = nullptr;
    const uint32_t length = left;
    uint16_t segments = 0;
    for (; left != 0; ++segments) {
        rte_mbuf *segment = std::exchange(spares_[segments], nullptr);
        segment->data_len = static_cast<uint16_t>(std::min(left, room_));
        left -= segment->data_len;
        if (tail != nullptr)
            tail->next = segment;
        tail = segment;
    }
    first->nb_segs = segments;
    first->pkt_len = length;
    if (plain) {
        std::memmove(head + tag_bytes, head, addresses_bytes);
        rte_pktmbuf_adj(first, tag_bytes);
    } else {
        set_type(head, tag_type);
        std::memcpy(head + addresses_bytes + sizeof(uint16_t), &header, sizeof(header));
    }
    *frame = first;
    return Read::frame;
}

/// Sends what waits. Without a link it is dropped: it would be old when there is one again.
void Lane::push()
{
    if (!state_.link_up.load(std::memory_order_relaxed)) {
        rte_pktmbuf_free_bulk(waiting_.data() + first_, last_ - first_);
        counts_.no_link.add(last_ - first_);
        first_ = last_;
    }
    if (first_ != last_) {
        const uint16_t sent = rte_eth_tx_burst(port_, queue_, waiting_.data() + first_,
                                               static_cast<uint16_t>(last_ - first_));
        counts_.to_peer.add(sent);
        first_ += sent;
    }
    if (first_ == last_)
        first_ = last_ = 0;
}

bool Lane::to_peer()
{
    if (queue_ == 0 && state_.hello_is_due.load(std::memory_order_acquire))
        say_hello();
    if (blocked()) {
        const unsigned before = first_;
        push();
        if (blocked())
            return first_ != before;
    }
    if (!used_by_kernel())
        return false;
    bool any = false;
    for (uint32_t bytes = 0; last_ < burst && bytes < batch_bytes;) {
        rte_mbuf *frame = nullptr;
        const Read read = read_frame(&frame);
        if (read == Read::nothing)
            break;
        any = true;
        if (read == Read::dropped) {
            counts_.not_a_frame.add(1);
            break;
        }
        bytes += frame->pkt_len;
        waiting_[last_++] = frame;
    }
    push();
    return any;
}

void Lane::say_hello()
{
    uint8_t frame[hello_bytes] = {};
    rte_ether_addr mac{};
    rte_eth_macaddr_get(port_, &mac);
    std::memset(frame, 0xff, RTE_ETHER_ADDR_LEN);
    std::memcpy(frame + RTE_ETHER_ADDR_LEN, &mac, sizeof(mac));
    set_type(frame, hello_type);
    std::memcpy(frame + RTE_ETHER_HDR_LEN, &state_.hello, sizeof(state_.hello));
    rte_mbuf *m = rte_pktmbuf_alloc(pool_);
    char *data = m == nullptr ? nullptr : rte_pktmbuf_append(m, sizeof(frame));
    if (data == nullptr)
        return; // the next round tries again
    std::memcpy(data, frame, sizeof(frame));
    if (rte_eth_tx_burst(port_, queue_, &m, 1) == 1)
        state_.hello_is_due.store(false, std::memory_order_relaxed);
    else
        rte_pktmbuf_free(m);
}

/// What it says is the peer's: only known flags count, and the number of queues is bounded by ours.
void Lane::hear(const rte_mbuf *frame)
{
    uint8_t copy[hello_bytes];
    if (frame->data_len < hello_bytes)
        return;
    std::memcpy(copy, rte_pktmbuf_mtod(frame, const void *), sizeof(copy));
    Hello hello;
    std::memcpy(&hello, copy + RTE_ETHER_HDR_LEN, sizeof(hello));
    if (hello.version != Hello::known_version)
        return;
    uint32_t word = PeerWord::said_it | rte_le_to_cpu_16(hello.queues);
    if ((hello.flags & Hello::offloads) != 0)
        word |= PeerWord::takes_offloads;
    state_.peer.store(word, std::memory_order_release);
    state_.main.ring();
}

/// The kernel checks the header behind a tag as it checks a virtual machine's. It lies in memory
/// that the peer can write: one copy is looked at and handed on.
void Lane::write_frame(const rte_mbuf *frame)
{
    uint8_t head[addresses_bytes + tag_bytes];
    if (frame->data_len < sizeof(head) || frame->nb_segs > segments_max - 3) {
        counts_.not_a_frame.add(1);
        return;
    }
    const auto *data = rte_pktmbuf_mtod(frame, uint8_t *);
    std::memcpy(head, data, sizeof(head));
    const uint16_t type = type_of(head);
    if (type == hello_type) {
        hear(frame);
        return;
    }
    OffloadHeader plain{};
    std::array<iovec, segments_max> parts;
    unsigned n = 0;
    if (type == tag_type) {
        parts[n++] = {head + addresses_bytes + sizeof(type), sizeof(OffloadHeader)};
        parts[n++] = {head, addresses_bytes};
        parts[n++] = {const_cast<uint8_t *>(data) + sizeof(head), frame->data_len - sizeof(head)};
    } else {
        parts[n++] = {&plain, sizeof(plain)};
        parts[n++] = {const_cast<uint8_t *>(data), frame->data_len};
    }
    for (const rte_mbuf *m = frame->next; m != nullptr; m = m->next)
        parts[n++] = {rte_pktmbuf_mtod(m, void *), m->data_len};
    if (writev(kernel(), parts.data(), static_cast<int>(n)) < 0)
        counts_.refused.add(1);
    else
        counts_.to_kernel.add(1);
}

bool Lane::to_kernel()
{
    std::array<rte_mbuf *, burst> frames;
    const uint16_t got = rte_eth_rx_burst(port_, queue_, frames.data(), burst);
    for (unsigned i = 0; i < got; ++i)
        write_frame(frames[i]);
    rte_pktmbuf_free_bulk(frames.data(), got);
    return got != 0;
}

} // namespace net
