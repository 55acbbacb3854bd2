// SPDX-License-Identifier: BSD-3-Clause
// Ours: messages over a channel between two hosts on the software twin, by the public calls.
#include "peers/own_channel.hpp"
#include "peers/run.hpp"

namespace peers
{

namespace
{

class Channel
{
public:
    static std::unique_ptr<Channel> open(const Options &options, std::string &error)
    {
        auto link = std::make_unique<Channel>();
        return link->m_own.open(options, 0, error) ? std::move(link) : nullptr;
    }

    size_t max_message() const
    {
        ntbmsg_channel_info info = {};
        info.size = sizeof(info);
        return ntbmsg_channel_info_get(m_own.channel(), &info) == 0 ? info.max_message : 0;
    }

    bool send(size_t bytes, uint64_t value, unsigned n, uint64_t give_up)
    {
        rte_mbuf **messages = m_own.maker().make(bytes, value, n);
        return messages && push_all(messages, n, give_up, [&](rte_mbuf **mbufs, uint16_t left) {
                   return push(mbufs, left);
               });
    }

    int receive(size_t bytes, unsigned n, uint64_t &sum)
    {
        rte_mbuf *messages[most_burst];
        const int got =
            ntbmsg_channel_recv_burst(m_own.channel(), messages, nullptr, static_cast<uint16_t>(n));
        if (got > 0)
            sum += take_burst(messages, static_cast<unsigned>(got), bytes);
        return got < 0 ? -1 : got;
    }

private:
    int push(rte_mbuf **mbufs, uint16_t n)
    {
        const int taken = ntbmsg_channel_send_burst(m_own.channel(), mbufs, nullptr, n);
        if (taken == 0)
            ntbmsg_worker_poll(m_own.worker()); // credit comes by it: nothing is received meanwhile
        return taken;
    }

    OwnChannel m_own;
};

} // namespace

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run_peer<peers::Channel>(argc, argv);
}
