// SPDX-License-Identifier: BSD-3-Clause
#include "traffic/message.hpp"

#include <algorithm>
#include <cstring>

#include <rte_mbuf.h>

namespace echo
{

rte_mbuf *alloc_message(rte_mempool *pool, size_t bytes)
{
    rte_mbuf *head = nullptr, *tail = nullptr;
    do {
        rte_mbuf *piece = rte_pktmbuf_alloc(pool);
        if (piece == nullptr) {
            rte_pktmbuf_free(head);
            return nullptr;
        }
        const size_t n = std::min<size_t>(bytes, rte_pktmbuf_tailroom(piece));
        rte_pktmbuf_append(piece, static_cast<uint16_t>(n));
        bytes -= n;
        if (head == nullptr) {
            head = piece;
        } else {
            // Not rte_pktmbuf_chain(): it looks for the last segment from the first one each time,
            // which takes a third of a second for the 8192 segments of the longest message.
            tail->next = piece;
            ++head->nb_segs;
            head->pkt_len += piece->data_len;
        }
        tail = piece;
    } while (bytes != 0);
    return head;
}

rte_mbuf *make_message(rte_mempool *pool, const std::byte *data, size_t bytes)
{
    rte_mbuf *message = alloc_message(pool, bytes);
    for (rte_mbuf *piece = message; piece != nullptr; piece = piece->next) {
        std::memcpy(rte_pktmbuf_mtod(piece, void *), data, piece->data_len);
        data += piece->data_len;
    }
    return message;
}

void Content::copy(std::byte *to, size_t bytes)
{
    while (bytes != 0) {
        const size_t n = std::min(bytes, piece_->data_len - at_);
        std::memcpy(to, rte_pktmbuf_mtod_offset(piece_, const std::byte *, at_), n);
        to += n;
        bytes -= n;
        at_ += n;
        if (at_ == piece_->data_len) {
            piece_ = piece_->next;
            at_ = 0;
        }
    }
}

std::vector<std::byte> test_pattern(size_t bytes)
{
    std::vector<std::byte> content(bytes);
    for (size_t i = 0; i < bytes; ++i)
        content[i] = static_cast<std::byte>(i * 167 + 13);
    return content;
}

} // namespace echo
