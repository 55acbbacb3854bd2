// SPDX-License-Identifier: BSD-3-Clause
// A Link over libraries that take requests (Open MPI, UCX, libfabric): receives are posted ahead
// and taken in order, a burst of sends is posted and awaited. An Api is
//
//   struct Request;                       // one that is under way
//   bool post_send(void *, size_t bytes, Request &);
//   bool post_receive(void *, size_t room, Request &);
//   int done(Request &);                  // 1 yes; 0 not yet, having made progress; -1 it failed
#ifndef BENCH_PEERS_LINKS_POSTED_HPP
#define BENCH_PEERS_LINKS_POSTED_HPP

#include "peers/pair/exchange.hpp"
#include "peers/pair/run.hpp"

namespace peers
{

template <typename Api>
class PostedLink : public PayloadLink
{
public:
    static constexpr size_t room = 65536;

    static std::unique_ptr<PostedLink> open(const Options &options, std::string &error)
    {
        std::unique_ptr<PostedLink> link(new PostedLink);
        if (!link->m_api.open(options, error))
            return nullptr;
        for (Slot &slot : link->m_in)
            if (!link->m_api.post_receive(slot.data, room, slot.request))
                error = "a receive cannot be posted";
        return error.empty() ? std::move(link) : nullptr;
    }

    size_t max_message() const { return room; }

    int send(uint64_t value, unsigned n, uint64_t give_up)
    {
        for (unsigned i = 0; i < n; i++) {
            write_payload(m_out[i].data, m_bytes, value + i);
            if (!m_api.post_send(m_out[i].data, m_bytes, m_out[i].request))
                return EIO;
        }
        for (unsigned i = 0; i < n; i++)
            if (const int done = await(m_out[i].request, give_up); done < 0)
                return -done;
        return 0;
    }

    int receive(unsigned n, uint64_t &sum)
    {
        for (unsigned got = 0; got < n; got++) {
            Slot &slot = m_in[m_next % most_burst];
            const int done = m_api.done(slot.request);
            if (done < 0)
                return -EIO;
            if (done == 0)
                return static_cast<int>(got);
            sum += read_payload(slot.data, m_bytes);
            if (!m_api.post_receive(slot.data, room, slot.request))
                return -EIO;
            m_next++;
        }
        return static_cast<int>(n);
    }

private:
    struct alignas(4096) Slot {
        std::byte data[room];
        typename Api::Request request;
    };

    PostedLink() : m_in(most_burst), m_out(most_burst) {}

    int await(typename Api::Request &request, uint64_t give_up)
    {
        return measure::await(give_up, [&] {
            const int done = m_api.done(request);
            return done < 0 ? -EIO : done;
        });
    }

    // Before the library: what is under way must not outlive it.
    std::vector<Slot> m_in;
    std::vector<Slot> m_out;
    Api m_api;
    uint64_t m_next = 0;
};

} // namespace peers

#endif
