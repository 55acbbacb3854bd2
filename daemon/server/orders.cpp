// SPDX-License-Identifier: BSD-3-Clause
#include "server/orders.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

namespace ntbd
{

Orders::Orders() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Orders::~Orders()
{
    close(fd_);
}

void Orders::put(RelayOrder &&order)
{
    const std::lock_guard held(lock_);
    orders_.push_back(std::move(order));
    any_.store(true, std::memory_order_release);
    eventfd_write(fd_, 1);
}

std::optional<RelayOrder> Orders::take()
{
    const std::lock_guard held(lock_);
    if (orders_.empty()) {
        eventfd_t none;
        eventfd_read(fd_, &none);
        any_.store(false, std::memory_order_release);
        return {};
    }
    std::optional<RelayOrder> first = std::move(orders_.front());
    orders_.pop_front();
    return first;
}

} // namespace ntbd
