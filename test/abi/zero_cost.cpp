// SPDX-License-Identifier: BSD-3-Clause
// Each call of the data path twice: as C has it, and through ntbmsg.hpp. zero_cost.py compares what
// the compiler made of the two functions of a pair.
#include <ntbmsg.hpp>

namespace
{

/// What an owner is in memory.
template <typename T>
struct Held {
    T *handle;
};

using CEndpoint = Held<ntbmsg_endpoint>;
using CChannel = Held<ntbmsg_channel>;
using CPollSet = Held<ntbmsg_poll_set>;
using CQueue = Held<ntbmsg_cq>;

} // namespace

extern "C" {

int c_send_burst(CEndpoint &e, uint16_t queue, rte_mbuf **mbufs, size_t n)
{
    return ntbmsg_queue_send_burst(e.handle, queue, mbufs, nullptr, static_cast<uint16_t>(n));
}

int cpp_send_burst(ntbmsg::Endpoint &e, uint16_t queue, rte_mbuf **mbufs, size_t n)
{
    return e.send_burst(queue, {mbufs, n});
}

int c_send_burst_meta(CEndpoint &e, uint16_t queue, rte_mbuf **mbufs, ntbmsg_meta *meta, size_t n)
{
    return ntbmsg_queue_send_burst(e.handle, queue, mbufs, meta, static_cast<uint16_t>(n));
}

int cpp_send_burst_meta(ntbmsg::Endpoint &e, uint16_t queue, rte_mbuf **mbufs, ntbmsg_meta *meta,
                        size_t n)
{
    return e.send_burst(queue, {mbufs, n}, {meta, n});
}

int c_recv_burst_fixed(CEndpoint &e, uint16_t queue, rte_mbuf *(&mbufs)[32])
{
    return ntbmsg_queue_recv_burst(e.handle, queue, mbufs, nullptr, 32);
}

int cpp_recv_burst_fixed(ntbmsg::Endpoint &e, uint16_t queue, rte_mbuf *(&mbufs)[32])
{
    return e.recv_burst(queue, mbufs);
}

int c_recv_burst_meta(CEndpoint &e, uint16_t queue, rte_mbuf **mbufs, ntbmsg_meta *meta, size_t n)
{
    return ntbmsg_queue_recv_burst(e.handle, queue, mbufs, meta, static_cast<uint16_t>(n));
}

int cpp_recv_burst_meta(ntbmsg::Endpoint &e, uint16_t queue, rte_mbuf **mbufs, ntbmsg_meta *meta,
                        size_t n)
{
    return e.recv_burst(queue, {mbufs, n}, {meta, n});
}

int c_channel_send_burst(CChannel &c, rte_mbuf **mbufs, const uint32_t *imm, size_t n)
{
    return ntbmsg_channel_send_burst(c.handle, mbufs, imm, static_cast<uint16_t>(n));
}

int cpp_channel_send_burst(ntbmsg::Channel &c, rte_mbuf **mbufs, const uint32_t *imm, size_t n)
{
    return c.send_burst({mbufs, n}, {imm, n});
}

int c_channel_recv_burst(CChannel &c, rte_mbuf **mbufs, uint32_t *imm, size_t n)
{
    return ntbmsg_channel_recv_burst(c.handle, mbufs, imm, static_cast<uint16_t>(n));
}

int cpp_channel_recv_burst(ntbmsg::Channel &c, rte_mbuf **mbufs, uint32_t *imm, size_t n)
{
    return c.recv_burst({mbufs, n}, {imm, n});
}

int c_poll_fixed(CPollSet &set, ntbmsg_ready (&ready)[32])
{
    return ntbmsg_poll_set_poll(set.handle, ready, 32);
}

int cpp_poll_fixed(ntbmsg::PollSet &set, ntbmsg_ready (&ready)[32])
{
    return set.poll(ready);
}

int c_post_burst(CChannel &c, const ntbmsg_work *works, size_t n)
{
    return ntbmsg_channel_post_burst(c.handle, works, static_cast<uint16_t>(n));
}

int cpp_post_burst(ntbmsg::Channel &c, const ntbmsg_work *works, size_t n)
{
    return c.post_burst({works, n});
}

int c_cq_poll_fixed(CQueue &cq, ntbmsg_completion (&completions)[32])
{
    return ntbmsg_cq_poll(cq.handle, completions, 32);
}

int cpp_cq_poll_fixed(ntbmsg::CompletionQueue &cq, ntbmsg_completion (&completions)[32])
{
    return cq.poll(completions);
}

} // extern "C"
