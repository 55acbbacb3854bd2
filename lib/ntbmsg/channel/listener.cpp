// SPDX-License-Identifier: BSD-3-Clause
#include "channel/listener.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include <pthread.h>

#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_rawdev.h>

#include <locked.hpp>

#include "channel/control.hpp"
#include "transport/proxy.hpp"
#include "transport/sending.hpp"
#include "transport/trace.hpp"

struct ntbmsg_listener {
    uint64_t serial; ///< unique in the process, never reused
    uint32_t backlog;
    uint16_t port;
    uint16_t waiting[RTE_RAWDEV_MAX_DEVS]
                    [RTE_PMD_PLX_NTB_MAX_QUEUES]; ///< requests, by device and worker
    [[no_unique_address]] ntbmsg::Watch watch;
};

namespace ntbmsg
{

namespace
{

constexpr uint32_t default_backlog = 64, max_backlog = 4096;
// So that a peer with an endless time-out cannot keep a slot for ever.
constexpr uint32_t longest_wait_ms = 3'600'000;

// Guards the ports and the listeners' counts. Connecting is control path.
pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;
ntbmsg_listener *ports[65536];
uint64_t last_serial;
// Listeners closed so far: when it changes, workers check their requests.
std::atomic<uint32_t> closed_listeners;

uint16_t &waiting_at(ntbmsg_listener &l, const Worker &w)
{
    return l.waiting[w.dev_id][w.index];
}

/// The listener of a request. With the lock held. @return NULL: it was closed
ntbmsg_listener *listener_of(const Channel &c)
{
    ntbmsg_listener *l = ports[c.port];
    return l != nullptr && l->serial == c.listener ? l : nullptr;
}

bool is_orphan(const Channel &c)
{
    const ntb::Locked held(ports_lock);
    return listener_of(c) == nullptr;
}

/// Counts one more request at the listener of a port. With the worker's lock held.
/// @return 0 and the listener's serial number, or the reason to reject the request
uint32_t register_request(const Worker &w, uint32_t port, uint64_t &serial)
{
    if (w.slots.used() == w.slots.count())
        return static_cast<uint32_t>(NTBMSG_REASON_NO_CHANNEL);
    const ntb::Locked held(ports_lock);
    ntbmsg_listener *l = port < std::size(ports) ? ports[port] : nullptr;
    if (l == nullptr)
        return static_cast<uint32_t>(NTBMSG_REASON_NO_LISTENER);
    if (waiting_at(*l, w) >= l->backlog)
        return static_cast<uint32_t>(NTBMSG_REASON_BACKLOG);
    ++waiting_at(*l, w);
    serial = l->serial;
    return 0;
}

/// Takes a request out of the list. With the worker's lock held.
void leave_requests(Channel &c)
{
    if (!RequestList::has(c))
        return;
    c.worker->requests.remove(c);
    const ntb::Locked held(ports_lock);
    if (ntbmsg_listener *l = listener_of(c); l != nullptr)
        --waiting_at(*l, *c.worker);
}

void fill_request(Channel &c, ntbmsg_listener *listener, ntbmsg_request *request)
{
    *request = {};
    request->worker = c.worker;
    request->listener = listener;
    request->id = c.rx_word;
    request->private_bytes = c.peer_private_bytes;
    std::memcpy(request->private_data, c.peer_private, c.peer_private_bytes);
}

} // namespace

Channel *find_request(const ntbmsg_request *request)
{
    Worker &w = *request->worker;
    Channel *c = w.slots.find(request->id);
    const bool open = c != nullptr && state_of(*c) == state_requested && !RequestList::has(*c);
    return open ? c : nullptr;
}

void open(Channel &c)
{
    c.rx.open();
    trace_open(c);
    c.state.store(NTBMSG_CHANNEL_OPEN, std::memory_order_release);
}

void reject(Channel &c, uint32_t reason)
{
    leave_requests(c);
    c.reason = reason;
    c.state.store(NTBMSG_CHANNEL_REJECTED, std::memory_order_release);
}

void queue_answer(Channel &c)
{
    if (c.worker->dedicated)
        call(c, state_of(c) == NTBMSG_CHANNEL_REJECTED ? call_reject : call_begin);
}

void send_answer(Channel &c, uint32_t owed)
{
    c.worker->timed.remove(c);
    owe(c, owed);
}

bool withdraw(Channel &c)
{
    Worker &w = *c.worker;
    const ntb::Locked held(w.lock);
    if (state_of(c) != state_requested)
        return false;
    leave_requests(c);
    w.timed.remove(c);
    w.owing.remove(c);
    w.slots.release(c);
    return true;
}

void on_connect(Worker &w, uint32_t port, const rte_mbuf *m)
{
    protocol::OpeningMessage message{};
    if (!copy_payload(m, &message, sizeof(message)) || !is_valid(message, m->pkt_len)) {
        w.bad_peer.add(1);
        return;
    }
    const protocol::Opening &o = message.opening;
    const ntb::Locked held(w.lock);
    uint64_t serial = 0;
    const uint32_t refusal = register_request(w, port, serial);
    if (refusal != 0)
        return add_reply(w, protocol::op_reject, protocol::slot_word(o.slot, o.generation),
                         refusal);
    Channel &c = *w.slots.take(); // register_request() checked that one is free
    c.begun = true;
    c.state.store(state_requested, std::memory_order_release);
    c.tx_word = protocol::slot_word(o.slot, o.generation);
    c.peer_credit = {o.messages, o.buffers};
    take_opening(c, o);
    c.port = static_cast<uint16_t>(port);
    c.listener = serial;
    c.peer_private_bytes = static_cast<uint8_t>(o.private_bytes);
    std::memcpy(c.peer_private, message.private_data, o.private_bytes);
    trace_request(c);
    w.requests.push(c);
    w.chores |= chore_requests;
    set_deadline(c, std::min(o.timeout_ms, longest_wait_ms));
}

void reject_orphans(Worker &w)
{
    const uint32_t closed = closed_listeners.load(std::memory_order_acquire);
    const ntb::Locked held(w.lock);
    if (w.requests.empty())
        w.chores &= ~chore_requests;
    if (closed == w.listeners_seen)
        return;
    w.listeners_seen = closed;
    for (Channel *c = w.requests.first(); c != nullptr;) {
        Channel *after = RequestList::after(*c);
        if (is_orphan(*c)) {
            reject(*c, static_cast<uint32_t>(NTBMSG_REASON_CLOSED));
            send_answer(*c, owe_reject);
        }
        c = after;
    }
}

} // namespace ntbmsg

int ntbmsg_listener_open(uint16_t port, uint32_t backlog, ntbmsg_listener **out)
{
    if (port == 0 || backlog > ntbmsg::max_backlog || out == nullptr)
        return -EINVAL;
    auto *l =
        static_cast<ntbmsg_listener *>(rte_zmalloc("ntbmsg_listener", sizeof(ntbmsg_listener), 0));
    if (l == nullptr)
        return -ENOMEM;
    l->port = port;
    l->backlog = backlog != 0 ? backlog : ntbmsg::default_backlog;
    const ntb::Locked held(ntbmsg::ports_lock);
    if (ntbmsg::ports[port] != nullptr) {
        rte_free(l);
        return -EADDRINUSE;
    }
    l->serial = ++ntbmsg::last_serial;
    ntbmsg::ports[port] = l;
    ntbmsg::begin_use(*l);
    *out = l;
    return 0;
}

void ntbmsg_listener_close(ntbmsg_listener *listener)
{
    if (!ntbmsg::is_live(listener, __func__))
        return;
    {
        const ntb::Locked held(ntbmsg::ports_lock);
        ntbmsg::ports[listener->port] = nullptr;
    }
    // Pairs with the acquire in reject_orphans(): with the new count the port is seen empty.
    ntbmsg::closed_listeners.fetch_add(1, std::memory_order_release);
    ntbmsg::end_use(listener);
}

int ntbmsg_listener_poll(ntbmsg_listener *listener, ntbmsg_worker *worker, ntbmsg_request *request)
{
    using namespace ntbmsg;
    if (!is_live(listener, __func__) || !is_live(worker, __func__) || request == nullptr)
        return -EINVAL;
    const Using use(watch_of_user(*worker), "worker", __func__);
    const ntb::Locked held(worker->lock);
    for (Channel *c = worker->requests.first(); c != nullptr; c = RequestList::after(*c)) {
        if (c->listener != listener->serial)
            continue;
        leave_requests(*c);
        fill_request(*c, listener, request);
        return 1;
    }
    return 0;
}
