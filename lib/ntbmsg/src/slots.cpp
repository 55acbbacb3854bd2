// SPDX-License-Identifier: BSD-3-Clause
#include "slots.hpp"

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
    Worker *worker = c->worker;
    auto generation = static_cast<uint16_t>(c->generation + 1U);
    if (generation == 0)
        generation = 1;
    c = new (c) Channel{};
    c->worker = worker;
    c->generation = generation;
    c->rx_word = protocol::slot_word(slot_of(*c), generation);
    ++used_;
    return c;
}

void Slots::give_back(Channel &c)
{
    c.rx_word = 0;
    one_sided_free(c);
    rendezvous_end(c, true);
    rendezvous_free(c);
    c.state.store(state_free, std::memory_order_release);
    --used_;
    free_.push(c);
}

} // namespace ntbmsg
