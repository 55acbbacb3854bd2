// SPDX-License-Identifier: BSD-3-Clause
// Messages of the server to the thread of the bridge.
#ifndef NTBD_SERVER_ORDERS_HPP
#define NTBD_SERVER_ORDERS_HPP

#include "broker/relay_order.hpp"

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

namespace ntbd
{

class Orders
{
public:
    Orders();
    ~Orders();
    Orders(const Orders &) = delete;
    Orders &operator=(const Orders &) = delete;

    /// Any thread.
    void put(RelayOrder &&order);
    std::optional<RelayOrder> take();
    /// Without a lock: what was put by this thread, or before the descriptor became readable, is
    /// seen.
    bool any() const { return any_.load(std::memory_order_acquire); }
    /// Readable while there is something, as far as it was not cleared by take().
    int fd() const { return fd_; }

private:
    std::mutex lock_;
    std::deque<RelayOrder> orders_;
    std::atomic<bool> any_{false};
    int fd_;
};

} // namespace ntbd

#endif
