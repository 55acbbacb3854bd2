// SPDX-License-Identifier: BSD-3-Clause
// Lists of received messages, linked through mbuf fields that have no meaning while a message
// waits. They lie in the cache line that the receive has just written.
#ifndef NTBMSG_TRANSPORT_PARKED_HPP
#define NTBMSG_TRANSPORT_PARKED_HPP

#include <cstring>

#include <rte_mbuf.h>

#include "transport/worker.hpp"

namespace ntbmsg
{

inline rte_mbuf *parked_next(const rte_mbuf *m)
{
    static_assert(sizeof(m->hash) >= sizeof(m));
    rte_mbuf *next;
    std::memcpy(&next, &m->hash, sizeof(next));
    return next;
}
inline void set_parked_next(rte_mbuf *m, rte_mbuf *next)
{
    std::memcpy(&m->hash, &next, sizeof(next));
}

/// Appends @p n messages with their immediate data.
template <class WordOf>
inline void park(Parked &list, rte_mbuf **mbufs, unsigned n, WordOf word_of)
{
    for (unsigned i = 0; i < n; ++i) {
        mbufs[i]->packet_type = word_of(i);
        set_parked_next(mbufs[i], i + 1 < n ? mbufs[i + 1] : nullptr);
    }
    if (list.first == nullptr)
        list.first = mbufs[0];
    else
        set_parked_next(list.last, mbufs[0]);
    list.last = mbufs[n - 1];
}

/// Parks what is left of the held run as a list, so that another can be held, or more be appended.
inline void link_held(Worker &w)
{
    HeldRun &h = w.held;
    const uint32_t *words = h.words + h.next;
    h.of->first = nullptr;
    park(*h.of, h.mbufs + h.next, h.end - h.next, [=](unsigned i) { return words[i]; });
    h.of = nullptr;
    w.chores &= ~chore_held;
}
/// The same if it is of @p list.
inline void link_held_of(Worker &w, const Parked &list)
{
    if (unlikely(w.held.of == &list))
        link_held(w);
}

/// Takes up to @p n of the oldest, in the state in which the driver delivers mbufs.
/// @param words  for their immediate data; NULL: not wanted
inline unsigned unpark(Parked &list, rte_mbuf **mbufs, uint32_t *words, unsigned n)
{
    unsigned got = 0;
    rte_mbuf *m = list.first;
    for (; got < n && m != nullptr; ++got) {
        rte_mbuf *next = parked_next(m);
        if (next != nullptr)
            __builtin_prefetch(next);
        if (words != nullptr)
            words[got] = m->packet_type;
        m->packet_type = 0;
        mbufs[got] = m;
        m = next;
    }
    list.first = m;
    return got;
}

} // namespace ntbmsg

#endif
