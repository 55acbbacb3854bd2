// SPDX-License-Identifier: BSD-3-Clause
#include "channel/ending.hpp"

#include <cerrno>

#include <locked.hpp>

#include "rma/one_sided.hpp"
#include "transport/delivery.hpp"
#include "transport/sending.hpp"
#include "transport/trace.hpp"

namespace ntbmsg
{

void end(Channel &c, uint8_t state, uint32_t reason)
{
    if (is_over(c))
        return;
    trace_end(c, state, reason);
    Worker &w = *c.worker;
    const bool answered = state_of(c) == NTBMSG_CHANNEL_CONNECTING;
    c.reason = reason;
    c.tx.now.messages = 0;
    c.rx.left = {};
    if (state != NTBMSG_CHANNEL_CLOSED)
        c.owed &= owe_reset;
    if (state != NTBMSG_CHANNEL_CLOSED || !c.close_waits)
        w.timed.remove(c); // else it stays, so that a peer that never answers cannot keep the slot
    w.stalled.remove(c);
    w.lending.remove(c);
    if (state == NTBMSG_CHANNEL_RESET && !c.close_seen)
        drop_parked(c);
    c.state.store(state, std::memory_order_release);
    if (state != NTBMSG_CHANNEL_CLOSED) { // else operations complete before CLOSE is sent
        c.close_waits = false;
        one_sided_end(c, -ECONNRESET);
    }
    const bool refused = state == NTBMSG_CHANNEL_REJECTED || state == NTBMSG_CHANNEL_TIMED_OUT;
    report(c, (refused ? 0 : NTBMSG_ENDED) | (answered ? NTBMSG_ANSWERED : NTBMSG_READABLE));
    if (c.proxy != nullptr)
        w.stalled.push(c); // so that its unsent messages are freed
    maybe_free(c);
}

void reset(Channel &c, uint32_t reason)
{
    if (is_over(c))
        return;
    if (c.tx_word != 0) // else its slot is not known yet; a late ACCEPT is answered with RESET
        owe(c, owe_reset);
    end(c, NTBMSG_CHANNEL_RESET, reason);
}

void protocol_error(Channel &c)
{
    if (is_over(c))
        return; // the peer may not have known of the end
    c.worker->bad_peer.add(1);
    reset(c, static_cast<uint32_t>(NTBMSG_REASON_PROTOCOL));
}

void maybe_free(Channel &c)
{
    Worker &w = *c.worker;
    if (c.handle.load(std::memory_order_relaxed) || c.owed != 0 || !is_over(c))
        return;
    // A poll set may still have it in a list.
    if (c.set != nullptr)
        return;
    drop_parked(c);
    w.owing.remove(c);
    w.timed.remove(c);
    w.stalled.remove(c);
    w.lending.remove(c);
    const ntb::Locked held(w.lock);
    if (c.calls.load(std::memory_order_acquire) != 0)
        return;                    // another thread has just called call()
    one_sided_end(c, -ECONNRESET); // a closed one may still be in the list `operating`
    one_sided_free(c);
    free_proxy(c);
    w.budget.release(c.rx.granted);
    w.budget.release(c.lending.extra);
    w.slots.release(c);
}

} // namespace ntbmsg
