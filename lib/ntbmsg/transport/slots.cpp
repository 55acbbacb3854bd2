// SPDX-License-Identifier: BSD-3-Clause
#include "transport/slots.hpp"

#include <cerrno>
#include <new>

#include <rte_malloc.h>

namespace ntbmsg
{

int Slots::init(Worker &worker, uint32_t count, int socket)
{
    channels_ = static_cast<Channel *>(
        rte_zmalloc_socket("ntbmsg_channels", count * sizeof(Channel), alignof(Channel), socket));
    if (channels_ == nullptr)
        return -ENOMEM;
    count_ = count;
    for (uint32_t i = 0; i < count; ++i) {
        channels_[i].worker = &worker;
        free_.push(channels_[i]);
    }
    return 0;
}

void Slots::destroy()
{
    rte_free(channels_);
    channels_ = nullptr;
    count_ = 0;
}

Channel *Slots::take()
{
    Channel *c = free_.pop();
    if (c == nullptr)
        return nullptr;
    if (++c->generation == 0)
        c->generation = 1;
    used_.fetch_add(1, std::memory_order_relaxed);
    c->rx_word.store(protocol::slot_word(slot_of(*c), c->generation), std::memory_order_relaxed);
    return c;
}

void Slots::release(Channel &c)
{
    Worker *worker = c.worker;
    const uint16_t generation = c.generation;
    new (&c) Channel{};
    c.worker = worker;
    c.generation = generation;
    used_.fetch_sub(1, std::memory_order_relaxed);
    free_.push(c);
}

} // namespace ntbmsg
