// SPDX-License-Identifier: BSD-3-Clause
// Ours: a channel between two hosts on the software twin, by the public calls.
#include "own_endpoint.hpp"
#include "run.hpp"

#include <unistd.h>

namespace peers
{

namespace
{

constexpr uint16_t port = 20;
// Enough that credit is no limit: some bursts of short messages, two bursts of long ones.
constexpr uint32_t credit_messages = 1024;
constexpr uint32_t credit_bytes = 2u << 20;
constexpr uint64_t connect_ns = 15000000000u;

class Channel
{
public:
    static std::unique_ptr<Channel> open(const Options &options, std::string &error);

    Channel() = default;
    ~Channel()
    {
        ntbmsg_channel_close(m_channel);
        ntbmsg_listener_close(m_listener);
    }
    Channel(const Channel &) = delete;
    Channel &operator=(const Channel &) = delete;

    size_t max_message() const
    {
        ntbmsg_channel_info info = {};
        info.size = sizeof(info);
        return ntbmsg_channel_info_get(m_channel, &info) == 0 ? info.max_message : 0;
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
            ntbmsg_channel_recv_burst(m_channel, messages, nullptr, static_cast<uint16_t>(n));
        if (got > 0)
            sum += take_burst(messages, static_cast<unsigned>(got), bytes);
        return got < 0 ? -1 : got;
    }

private:
    int push(rte_mbuf **mbufs, uint16_t n)
    {
        const int taken = ntbmsg_channel_send_burst(m_channel, mbufs, nullptr, n);
        if (taken == 0)
            ntbmsg_worker_poll(m_worker); // credit comes by it: nothing is received meanwhile
        return taken;
    }
    int connect(const ntbmsg_channel_options &options);
    int accept(const ntbmsg_channel_options &options);

    OwnEndpoint m_own;
    ntbmsg_worker *m_worker = nullptr;
    ntbmsg_listener *m_listener = nullptr;
    ntbmsg_channel *m_channel = nullptr;
};

std::unique_ptr<Channel> Channel::open(const Options &options, std::string &error)
{
    auto link = std::make_unique<Channel>();
    if (!link->m_own.open(options, 0, 1, error))
        return nullptr;
    link->m_worker = ntbmsg_worker_get(link->m_own.endpoint(), 0);
    ntbmsg_channel_options settings;
    ntbmsg_channel_options_init(&settings);
    settings.credit_messages = credit_messages;
    settings.credit_bytes = credit_bytes;
    const int failed = options.side == 1 ? link->accept(settings) : link->connect(settings);
    if (failed == 0)
        return link;
    error = std::string("the channel does not open: ") + strerror(-failed);
    return nullptr;
}

/// The other side may not listen yet, which is a refusal.
int Channel::connect(const ntbmsg_channel_options &options)
{
    const uint64_t give_up = monotonic_ns() + connect_ns;
    for (;;) {
        int failed = ntbmsg_connect(m_worker, port, &options, &m_channel);
        if (failed == 0)
            failed = ntbmsg_channel_wait_open(m_channel, OwnEndpoint::connect_ms);
        if (failed != -ECONNREFUSED || monotonic_ns() > give_up)
            return failed;
        ntbmsg_channel_close(m_channel);
        m_channel = nullptr;
        usleep(1000);
    }
}

int Channel::accept(const ntbmsg_channel_options &options)
{
    const int failed = ntbmsg_listen(port, 0, &m_listener);
    if (failed != 0)
        return failed;
    ntbmsg_request request;
    for (const uint64_t give_up = monotonic_ns() + connect_ns; monotonic_ns() < give_up;) {
        ntbmsg_worker_poll(m_worker);
        if (ntbmsg_listener_poll(m_listener, m_worker, &request) == 1)
            return ntbmsg_accept(&request, &options, &m_channel);
    }
    return -ETIMEDOUT;
}

} // namespace

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run_peer<peers::Channel>(argc, argv);
}
