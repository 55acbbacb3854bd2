// SPDX-License-Identifier: BSD-3-Clause
// What waits to be sent on one queue: kept, in order, as long as the peer takes less.
#ifndef ECHO_TRAFFIC_OUTBOX_HPP
#define ECHO_TRAFFIC_OUTBOX_HPP

#include <array>
#include <cstdint>

#include "traffic/forwarder.hpp"

namespace echo
{

/// Up to a burst. Filled when empty, then flushed until it is empty again.
class Outbox
{
public:
    Outbox() = default;
    ~Outbox() { drop_all(); }
    Outbox(const Outbox &) = delete;
    Outbox &operator=(const Outbox &) = delete;

    bool empty() const { return begin_ == end_; }
    uint16_t waiting() const { return static_cast<uint16_t>(end_ - begin_); }
    bool full() const { return end_ == longest_burst; }

    /// To be filled from the front, then filled(n). Only while empty.
    rte_mbuf **mbufs() { return mbufs_.data(); }
    ntbmsg_meta *meta() { return meta_.data(); }
    void filled(uint16_t n)
    {
        begin_ = 0;
        end_ = n;
    }
    /// Or one by one, while it is not full().
    void add(rte_mbuf *mbuf, const ntbmsg_meta &meta);

    /// What waits, from the first message on.
    rte_mbuf *const *front() const { return &mbufs_[begin_]; }
    ntbmsg_meta *front_meta() { return &meta_[begin_]; }

    /// Sends what the peer takes. @param most  messages
    /// @return messages sent, or the error of the burst call, which is about the first message
    int flush(const Way &way, Counters &counters, uint16_t most = longest_burst);

    /// Frees the first messages, which are not to be sent any more, or all. @return how many
    uint64_t free_front(uint16_t n);
    uint64_t drop_all() { return free_front(waiting()); }

private:
    std::array<rte_mbuf *, longest_burst> mbufs_;
    std::array<ntbmsg_meta, longest_burst> meta_;
    uint16_t begin_ = 0, end_ = 0;
};

} // namespace echo

#endif
