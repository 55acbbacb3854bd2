// SPDX-License-Identifier: BSD-3-Clause
#include "traffic/carrier.hpp"

#include <algorithm>
#include <cstring>

#include <rte_cycles.h>

namespace echo
{

namespace
{

// What need not be looked at in each round.
constexpr unsigned rounds_per_check = 256;
// A channel that has ended is kept for some looks: messages may be left in it.
constexpr unsigned looks_to_drain = 4;
constexpr uint64_t tries_per_second = 50;
// What a peer may have sent and we not have received: enough to keep the ring busy, and a part of
// what the worker has for all of them.
constexpr uint32_t credit_messages = 512;
constexpr uint64_t rx_mbufs = 16384; // of a worker, by default
constexpr uint32_t busy_reason = 1;

const char *name_of(enum ntbmsg_channel_state state)
{
    switch (state) {
    case NTBMSG_CHANNEL_CONNECTING:
        return "connecting";
    case NTBMSG_CHANNEL_OPEN:
        return "open";
    case NTBMSG_CHANNEL_PEER_CLOSED:
        return "closed by the peer";
    case NTBMSG_CHANNEL_SHUT:
        return "shut down";
    case NTBMSG_CHANNEL_CLOSED:
        return "closed";
    case NTBMSG_CHANNEL_REJECTED:
        return "rejected by the peer";
    case NTBMSG_CHANNEL_TIMED_OUT:
        return "not answered by the peer";
    case NTBMSG_CHANNEL_RESET:
        return "reset";
    case NTBMSG_CHANNEL_LOST:
        return "lost with the link";
    }
    return "unknown";
}

} // namespace

Carrier::Carrier(ntbmsg_endpoint *endpoint, uint64_t channels, uint32_t credit_bytes, bool connects)
    : worker_(ntbmsg_endpoint_worker(endpoint, 0)), credit_bytes_(credit_bytes),
      connects_(connects), slots_(channels)
{
}

Carrier::~Carrier()
{
    for (Slot &slot : slots_)
        ntbmsg_channel_close(slot.handle);
    ntbmsg_listener_close(listener_);
}

std::string Carrier::listen()
{
    if (slots_.empty() || connects_ || listener_ != nullptr)
        return {};
    const int rc = ntbmsg_listener_open(channel_port, 0, &listener_);
    return rc == 0 ? std::string()
                   : "cannot listen on port " + std::to_string(channel_port) + ": " +
                         std::strerror(-rc);
}

void Carrier::poll()
{
    ntbmsg_worker_poll(worker_);
    if (++rounds_ % rounds_per_check != 0)
        return;
    for (size_t i = 0; i < slots_.size(); ++i)
        look(slots_[i], static_cast<uint32_t>(i));
    ntbmsg_request request;
    for (size_t i = 0; i < slots_.size() && listener_ != nullptr &&
                       ntbmsg_listener_poll(listener_, worker_, &request) == 1;
         ++i)
        accept(request);
}

void Carrier::look(Slot &slot, uint32_t number)
{
    if (slot.handle == nullptr) {
        if (connects_ && rte_rdtsc() >= slot.next_try)
            connect(slot, number);
        return;
    }
    const enum ntbmsg_channel_state state = ntbmsg_channel_state_get(slot.handle);
    if (state == NTBMSG_CHANNEL_OPEN || state == NTBMSG_CHANNEL_CONNECTING)
        return;
    if (++slot.ended_looks >= looks_to_drain)
        drop(slot);
}

/// Each wait of the caller's is a fact of the library's: -ENOTCONN while the link is down.
void Carrier::connect(Slot &slot, uint32_t number)
{
    slot.next_try = rte_rdtsc() + rte_get_tsc_hz() / tries_per_second;
    const ntbmsg_channel_options o = options(number);
    const int rc = ntbmsg_channel_connect(worker_, channel_port, &o, &slot.handle);
    if (rc != 0)
        slot.last = rc == -ENOTCONN ? "the peer is not there" : "no room for another channel";
}

/// The peer's number is checked before it is used; a channel that it connects anew replaces the one
/// that has ended.
void Carrier::accept(const ntbmsg_request &request)
{
    uint32_t number = 0;
    const bool right = request.private_bytes == sizeof(number);
    if (right)
        std::memcpy(&number, request.private_data, sizeof(number));
    if (!right || number >= slots_.size()) {
        ntbmsg_request_reject(&request, busy_reason, nullptr, 0);
        return;
    }
    Slot &slot = slots_[number];
    if (slot.handle != nullptr && ntbmsg_channel_state_get(slot.handle) != NTBMSG_CHANNEL_OPEN)
        drop(slot);
    if (slot.handle != nullptr) {
        ntbmsg_request_reject(&request, busy_reason, nullptr, 0);
        return;
    }
    const ntbmsg_channel_options o = options(number);
    if (ntbmsg_channel_accept(&request, &o, &slot.handle) != 0)
        slot.handle = nullptr;
}

void Carrier::drop(Slot &slot)
{
    slot.last = name_of(ntbmsg_channel_state_get(slot.handle));
    if (slot.forwarder != nullptr)
        slot.forwarder->link_lost();
    ntbmsg_channel_close(slot.handle);
    slot.handle = nullptr;
    slot.ended_looks = 0;
    slot.next_try = rte_rdtsc() + rte_get_tsc_hz() / tries_per_second;
}

ntbmsg_channel_options Carrier::options(const uint32_t &number) const
{
    ntbmsg_channel_options options;
    ntbmsg_channel_options_init(&options);
    const uint64_t share = rx_mbufs / 2 / slots_.size();
    options.credit_messages = static_cast<uint32_t>(std::min<uint64_t>(credit_messages, share));
    options.credit_bytes = credit_bytes_;
    options.private_data = &number;
    options.private_bytes = sizeof(number);
    return options;
}

std::string Carrier::state(size_t i) const
{
    const Slot &slot = slots_[i];
    return slot.handle != nullptr ? name_of(ntbmsg_channel_state_get(slot.handle)) : slot.last;
}

bool Carrier::all_open() const
{
    return std::ranges::all_of(slots_, [](const Slot &slot) {
        return slot.handle != nullptr &&
               ntbmsg_channel_state_get(slot.handle) == NTBMSG_CHANNEL_OPEN;
    });
}

} // namespace echo
