// SPDX-License-Identifier: BSD-3-Clause
// One end of a connection through the node daemon, which has a process of its own: what fails ends
// it, with a line that says what.
#ifndef NTB_TEST_VERBS_END_HPP
#define NTB_TEST_VERBS_END_HPP

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "queue_pairs.hpp"

namespace verbs_test
{

[[noreturn]] inline void fail(const char *what, long status)
{
    printf("failed: %s: %ld\n", what, status);
    exit(1);
}

inline void check(const char *what, long status)
{
    if (status != 0)
        fail(what, status);
}

inline std::uint8_t byte_at(std::uint32_t place, std::uint32_t seed)
{
    return static_cast<std::uint8_t>(place * 131 + (place >> 9) + seed * 29);
}

/// A node of a daemon, and a domain.
class Node
{
public:
    Node(const char *socket, bool is_direct)
    {
        check("open", ntbv_node_open(socket, nullptr, nullptr, &node_));
        if (is_direct)
            check("direct", ntbv_node_be_direct(node_, NTBV_DIRECT));
        check("pd", ntbv_pd_create(engine(), &pd_));
    }
    ~Node()
    {
        check("end of the pd", ntbv_pd_destroy(pd_));
        check("close", ntbv_node_close(node_));
    }
    Node(const Node &) = delete;
    Node &operator=(const Node &) = delete;

    ntbv_engine *engine() const { return ntbv_node_engine(node_); }
    ntbv_pd *pd() const { return pd_; }
    std::uint16_t lid() const { return ntbv_node_lid(node_); }
    std::uint64_t count(ntbv_count which) const { return ntbv_engine_count(engine(), which); }

private:
    ntbv_node *node_ = nullptr;
    ntbv_pd *pd_ = nullptr;
};

/// Registered pages of their own, as peers can be granted them.
class Region
{
public:
    std::uint32_t key = 0;

    Region(const Node &node, std::uint32_t bytes, unsigned rights = all_rights)
        : bytes_(bytes),
          begin_(static_cast<std::uint8_t *>(
              mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
          pd_(node.pd())
    {
        if (begin_ == MAP_FAILED)
            fail("pages", bytes);
        check("region", ntbv_mr_register(pd_, begin_, bytes, address(), rights, &key));
    }
    ~Region()
    {
        deregister();
        munmap(begin_, bytes_);
    }
    Region(const Region &) = delete;
    Region &operator=(const Region &) = delete;

    void deregister()
    {
        if (key != 0)
            check("deregister", ntbv_mr_deregister(pd_, key));
        key = 0;
    }
    std::uint8_t *data() const { return begin_; }
    std::uint8_t &operator[](std::size_t i) const { return begin_[i]; }
    std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(begin_); }
    ntbv_sge piece(std::size_t offset, std::size_t length) const
    {
        return {address() + offset, static_cast<std::uint32_t>(length), key};
    }

private:
    const std::uint32_t bytes_;
    std::uint8_t *const begin_;
    ntbv_pd *const pd_;
};

/// A completion queue with a channel.
class Completions
{
public:
    /// @param sleeps  until completions come, instead of polling for them
    Completions(const Node &node, std::uint32_t entries, bool sleeps) : sleeps_(sleeps)
    {
        check("channel", ntbv_channel_create(node.engine(), &channel_));
        check("cq", ntbv_cq_create(node.engine(), entries, channel_, 1, &cq_));
    }
    ~Completions()
    {
        check("end of the cq", ntbv_cq_destroy(cq_));
        check("end of the channel", ntbv_channel_destroy(channel_));
    }
    Completions(const Completions &) = delete;
    Completions &operator=(const Completions &) = delete;

    ntbv_cq *cq() const { return cq_; }
    /// The next completion, whatever its status. @retval false a line has come first
    bool next(ntbv_wc &wc, bool or_line = false)
    {
        for (;;) {
            bool is_there = poll(wc);
            if (!is_there && sleeps_) {
                arm(false);
                is_there = poll(wc);
            }
            if (is_there)
                return true;
            if (sleeps_ && !sleep(or_line))
                return false;
        }
    }
    /// @retval false there is none
    bool poll(ntbv_wc &wc)
    {
        const int n = ntbv_cq_poll(cq_, 1, &wc);
        if (n < 0)
            fail("poll", n);
        return n == 1;
    }
    void arm(bool solicited_only) { check("arm", ntbv_cq_arm(cq_, solicited_only)); }
    /// Until an event has come. @retval false a line has come first
    bool sleep(bool or_line = false)
    {
        pollfd fds[2] = {{ntbv_channel_descriptor(channel_), POLLIN, 0},
                         {or_line ? STDIN_FILENO : -1, POLLIN, 0}};
        if (::poll(fds, 2, -1) < 0)
            fail("sleep", 0);
        if (fds[1].revents != 0)
            return false;
        std::uint64_t cookie;
        if (read(fds[0].fd, &cookie, sizeof(cookie)) != sizeof(cookie) || cookie != 1)
            fail("event", 0);
        return true;
    }
    bool has_event() const
    {
        pollfd fd = {ntbv_channel_descriptor(channel_), POLLIN, 0};
        return ::poll(&fd, 1, 0) == 1;
    }

private:
    const bool sleeps_;
    ntbv_channel *channel_ = nullptr;
    ntbv_cq *cq_ = nullptr;
};

/// What the words "here LID QPN KEY ADDRESS" of the other end say.
struct Peer {
    unsigned lid = 0, qpn = 0;
    std::uint64_t begin = 0;
    std::uint32_t key = 0;
    std::uint64_t address() const { return begin; }
};

inline void say_here(const Node &node, ntbv_qp *qp, const Region &region)
{
    printf("here %u %u %u %" PRIu64 "\n", node.lid(), ntbv_qp_number(qp), region.key,
           region.address());
}

/// To the queue pair of the end whose words come in a line.
inline Peer connect_to_line(ntbv_qp *qp)
{
    Peer peer;
    if (scanf(" %u %u %" SCNu32 " %" SCNu64, &peer.lid, &peer.qpn, &peer.key, &peer.begin) != 4)
        fail("peer", 0);
    check("rtr", to_rtr(qp, NTBV_RC, static_cast<std::uint16_t>(peer.lid), peer.qpn));
    check("rts", to_rts(qp, NTBV_RC));
    puts("connected");
    return peer;
}

} // namespace verbs_test

#endif
