// SPDX-License-Identifier: BSD-3-Clause
// Credit that grows where a sender uses all it has, and is asked back from channels that do not use
// theirs (doc/decisions/020-lent-credit.md). Called by the thread that drives the worker.
#ifndef NTBMSG_CHANNEL_LENDING_HPP
#define NTBMSG_CHANNEL_LENDING_HPP

#include "transport/worker.hpp"
#include "wire/protocol.hpp"

namespace ntbmsg
{

/// Kept in the budget for each further channel: enough to open and to receive messages one by one.
inline constexpr uint32_t messages_kept = 2, buffers_kept = 1;

inline Credit credit_in(uint32_t argument)
{
    return {protocol::credit_messages(argument), protocol::credit_buffers(argument)};
}
inline bool is_lending(uint32_t op)
{
    return op >= protocol::op_more && op <= protocol::op_surplus;
}

/// It is open: its credit may grow and be asked back.
void begin_lending(Channel &c);
/// A send was cut short for lack of credit: reported to the peer once, until it has granted more.
void ask_for_more(Channel &c);
/// Its credit was returned: it gets more if its peer lacks some.
void credit_returned(Channel &c);

// Owed control messages. @return 0; -EAGAIN: the ring is full
int send_grant(Channel &c);
int send_recall(Channel &c);
int send_given(Channel &c);
int send_more(Channel &c);

/// Handles MORE, GRANT, RECALL and SURPLUS. @return true: it has got credit
bool on_lending(Channel &c, uint32_t op, uint32_t argument, const rte_mbuf *m);

} // namespace ntbmsg

#endif
