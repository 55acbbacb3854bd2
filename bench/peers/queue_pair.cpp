// SPDX-License-Identifier: BSD-3-Clause
// Ours: a queue of an endpoint between two hosts on the software twin, by the public calls.
#include "peers/own_endpoint.hpp"
#include "peers/run.hpp"

namespace peers
{

namespace
{

class QueuePair
{
public:
    static std::unique_ptr<QueuePair> open(const Options &options, std::string &error)
    {
        auto link = std::make_unique<QueuePair>();
        return link->m_own.open(options, 1, 0, error) ? std::move(link) : nullptr;
    }

    size_t max_message() const { return ntbmsg_endpoint_max_message(m_own.endpoint()); }

    bool send(size_t bytes, uint64_t value, unsigned n, uint64_t give_up)
    {
        rte_mbuf **messages = m_own.maker().make(bytes, value, n);
        return messages && push_all(messages, n, give_up, [&](rte_mbuf **mbufs, uint16_t left) {
                   return ntbmsg_queue_send_burst(m_own.endpoint(), 0, mbufs, nullptr, left);
               });
    }

    int receive(size_t bytes, unsigned n, uint64_t &sum)
    {
        rte_mbuf *messages[most_burst];
        const int got = ntbmsg_queue_recv_burst(m_own.endpoint(), 0, messages, nullptr,
                                                static_cast<uint16_t>(n));
        if (got > 0)
            sum += take_burst(messages, static_cast<unsigned>(got), bytes);
        return got < 0 ? -1 : got;
    }

private:
    OwnEndpoint m_own;
};

} // namespace

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run_peer<peers::QueuePair>(argc, argv);
}
