// SPDX-License-Identifier: BSD-3-Clause
#include "streams.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <rte_mbuf.h>

namespace test
{

namespace
{

constexpr unsigned travelling_flags = 0x3f;

uint8_t byte_at(uint64_t key, uint32_t at)
{
    return static_cast<uint8_t>((key >> (8 * (at & 7))) + at * 7 + (at >> 8));
}

/// Eight of them, the first lowest.
uint64_t word_at(uint64_t key, uint32_t at)
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < sizeof(word); ++i)
        word |= uint64_t{byte_at(key, at + i)} << (8 * i);
    return word;
}

std::string complaint(const Stream &s, uint32_t index, const std::string &what)
{
    return "queue " + std::to_string(s.queue) + ", message " + std::to_string(index) + ": " + what;
}

std::string check_segments(const rte_mbuf *mbuf, uint64_t key, uint32_t length)
{
    uint32_t at = 0;
    unsigned segments = 0;
    for (const rte_mbuf *m = mbuf; m != nullptr; m = m->next, ++segments) {
        if (m->data_off != RTE_PKTMBUF_HEADROOM)
            return "data_off of segment " + std::to_string(segments);
        if (rte_mbuf_refcnt_read(m) != 1 || m->data_len > length - at)
            return "refcnt or data_len of segment " + std::to_string(segments);
        const uint32_t wrong =
            differing(rte_pktmbuf_mtod(m, const uint8_t *), key, at, m->data_len);
        if (wrong != 0)
            return std::to_string(wrong) + " bytes differ in segment " + std::to_string(segments);
        at += m->data_len;
    }
    return at == length && segments == mbuf->nb_segs ? "" : "segments do not add up";
}

} // namespace

uint64_t message_key(uint32_t seed, uint32_t index)
{
    uint64_t x = (uint64_t{seed} << 32 | index) + 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

// By words, for a sanitizer looks at each access.
void fill(uint8_t *to, uint64_t key, uint32_t at, uint32_t bytes)
{
    uint32_t i = 0;
    for (uint64_t word; bytes - i >= sizeof(word); i += sizeof(word)) {
        word = word_at(key, at + i);
        std::memcpy(to + i, &word, sizeof(word));
    }
    for (; i < bytes; ++i)
        to[i] = byte_at(key, at + i);
}

uint32_t differing(const uint8_t *from, uint64_t key, uint32_t at, uint32_t bytes)
{
    uint32_t wrong = 0;
    uint32_t i = 0;
    for (uint64_t word; bytes - i >= sizeof(word); i += sizeof(word)) {
        std::memcpy(&word, from + i, sizeof(word));
        for (uint64_t other = word ^ word_at(key, at + i); other != 0; other >>= 8)
            wrong += (other & 0xff) != 0;
    }
    for (; i < bytes; ++i)
        wrong += from[i] != byte_at(key, at + i);
    return wrong;
}

rte_pmd_plx_ntb_meta message_meta(const Stream &stream, uint32_t index)
{
    if (stream.plain)
        return {};
    const uint64_t key = message_key(stream.seed, index);
    return {.data = ~key, .flags = static_cast<uint32_t>(key >> 17), .reserved = 0};
}

uint32_t message_length(const Stream &stream, uint32_t index)
{
    return stream.lengths_used == 0 ? 8 : stream.lengths[index % stream.lengths_used];
}

rte_mbuf *make_message(rte_mempool *pool, const Stream &stream, uint32_t index)
{
    const uint64_t key = message_key(stream.seed, index);
    const uint32_t length = message_length(stream, index);
    rte_mbuf *head = nullptr;
    rte_mbuf *last = nullptr;
    uint32_t at = 0;
    do {
        rte_mbuf *m = rte_pktmbuf_alloc(pool);
        if (m == nullptr) {
            rte_pktmbuf_free(head);
            return nullptr;
        }
        const uint32_t room = stream.segment != 0 ? stream.segment : rte_pktmbuf_tailroom(m);
        const uint32_t part = std::min(room, length - at);
        m->data_len = static_cast<uint16_t>(part);
        fill(rte_pktmbuf_mtod(m, uint8_t *), key, at, part);
        at += part;
        if (head == nullptr)
            head = m;
        else {
            last->next = m;
            ++head->nb_segs;
        }
        last = m;
    } while (at < length);
    head->pkt_len = length;
    return head;
}

std::string check_message(const rte_mbuf *mbuf, const rte_pmd_plx_ntb_meta &meta, uint16_t device,
                          const Stream &stream, uint32_t index)
{
    const uint64_t key = message_key(stream.seed, index);
    const uint32_t length = message_length(stream, index);
    if (mbuf->pkt_len != length)
        return complaint(stream, index,
                         "length " + std::to_string(mbuf->pkt_len) + " instead of " +
                             std::to_string(length));
    const rte_pmd_plx_ntb_meta expected = message_meta(stream, index);
    if (meta.data != expected.data || meta.flags != (expected.flags & travelling_flags) ||
        meta.reserved != 0)
        return complaint(stream, index, "metadata");
    if (mbuf->port != device || mbuf->packet_type != 0)
        return complaint(stream, index, "port or packet type");
    if ((mbuf->ol_flags & ~RTE_MBUF_F_EXTERNAL) != 0)
        return complaint(stream, index, "flags of the mbuf");
    const std::string wrong = check_segments(mbuf, key, length);
    return wrong.empty() ? wrong : complaint(stream, index, wrong);
}

Sender::~Sender()
{
    for (unsigned i = next_; i < end_; ++i)
        rte_pktmbuf_free(ready_[i]);
}

void Sender::make_ready()
{
    next_ = end_ = 0;
    const uint32_t most = std::min({stream_.burst, burst_max, stream_.count - made_});
    for (; end_ < most; ++end_, ++made_) {
        const uint32_t index = stream_.first + made_;
        ready_[end_] = make_message(pool_, stream_, index);
        if (ready_[end_] == nullptr)
            return;
        meta_[end_] = message_meta(stream_, index);
    }
}

unsigned Sender::step()
{
    if (next_ == end_)
        make_ready();
    const auto n = static_cast<uint16_t>(end_ - next_);
    if (n == 0)
        return 0;
    const int rc = rte_pmd_plx_ntb_tx_burst(device_, static_cast<uint16_t>(stream_.queue),
                                            ready_ + next_, meta_ + next_, n);
    met_limit_ = rc >= 0 && rc < n;
    if (rc == -ENOTCONN)
        return 0;
    if (rc < 0 || rc > n) {
        error_ = complaint(stream_, stream_.first + moved_, "tx_burst gave " + std::to_string(rc));
        return 0;
    }
    next_ += static_cast<unsigned>(rc);
    moved_ += static_cast<uint32_t>(rc);
    return static_cast<unsigned>(rc);
}

unsigned Receiver::step()
{
    rte_mbuf *mbufs[burst_max];
    rte_pmd_plx_ntb_meta meta[burst_max];
    const auto n =
        static_cast<uint16_t>(std::min({stream_.burst, burst_max, stream_.count - moved_}));
    const int rc =
        rte_pmd_plx_ntb_rx_burst(device_, static_cast<uint16_t>(stream_.queue), mbufs, meta, n);
    met_limit_ = rc == 0;
    if (rc < 0 || rc > n) {
        error_ = "rx_burst gave " + std::to_string(rc);
        return 0;
    }
    for (int i = 0; i < rc; ++i) {
        if (error_.empty() && !stream_.unchecked)
            error_ = check_message(mbufs[i], meta[i], device_, stream_, stream_.first + moved_);
        ++moved_;
        if (keep_ != nullptr)
            keep_->push_back(mbufs[i]);
        else
            rte_pktmbuf_free(mbufs[i]);
    }
    return static_cast<unsigned>(rc);
}

} // namespace test
