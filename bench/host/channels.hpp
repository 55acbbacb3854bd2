// SPDX-License-Identifier: BSD-3-Clause
// Channels between the two hosts: side 0 connects them, side 1 accepts.
#ifndef BENCH_HOST_CHANNELS_HPP
#define BENCH_HOST_CHANNELS_HPP

#include "session/shared.hpp"

#include <vector>

#include <ntbmsg.h>

namespace bench
{

/// Messages that the peer may send ahead: on the first channel, which has figures of its own, what
/// the library grants (0); on each of the others a burst.
constexpr uint32_t other_credit = 32;
/// What the worker needs for that, with a default of its own for one channel (0). The first one
/// grows to 1024, by at most a quarter of what is left at a time.
constexpr uint32_t credit_of_all(uint32_t channels)
{
    constexpr uint32_t first = 4096;
    return channels > 1 ? first + (channels - 1) * other_credit : 0;
}

class Channels
{
public:
    Channels() = default;
    ~Channels() { close(); }
    Channels(const Channels &) = delete;
    Channels &operator=(const Channels &) = delete;

    /// To be called before the endpoint opens: then no connection comes too early.
    void listen(Result &);
    /// Connects, or accepts, the shape's channels. They are open at both ends when it returns.
    /// @param cq  for completions; or nullptr
    void open(ntbmsg_endpoint *endpoint, unsigned side, const Shape &shape, ntbmsg_cq *cq,
              Result &result);
    void close();

    ntbmsg_worker *worker() const { return m_worker; }
    ntbmsg_channel *at(size_t i) const { return m_channels[i]; }
    size_t count() const { return m_channels.size(); }
    /// Another thread drives the worker.
    bool dedicated() const { return m_dedicated; }
    ntbmsg_poll_set *set() const { return m_set; }

private:
    void turn() const;
    void connect(uint32_t count, Result &result);
    void accept(uint32_t count, Result &result);
    ntbmsg_channel_options next_options() const;
    void greet(ntbmsg_endpoint *endpoint, Result &result);
    void be_greeted(Result &result);

    ntbmsg_worker *m_worker = nullptr;
    bool m_dedicated = false;
    ntbmsg_listener *m_listener = nullptr;
    ntbmsg_poll_set *m_set = nullptr;
    ntbmsg_cq *m_cq = nullptr;
    uint32_t m_first_credit = 0;
    uint32_t m_credit_bytes = 0; ///< 0: the default
    std::vector<ntbmsg_channel *> m_channels;
};

} // namespace bench

#endif
