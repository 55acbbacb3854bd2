// SPDX-License-Identifier: BSD-3-Clause
// Messages between the thread of the device and the server.
#ifndef NTBD_SERVER_MAILBOX_HPP
#define NTBD_SERVER_MAILBOX_HPP

#include "server/introduction.hpp"
#include "server/orders.hpp"

#include <deque>
#include <mutex>
#include <optional>

namespace ntbd
{

struct LinkNews {
    enum class Kind {
        introducing, ///< own is about to be sent to the peer
        introduced,  ///< peer has introduced itself
        lost,        ///< the connection to the peer's daemon has ended
        message,     ///< one of the peer's daemon
        relay_ended, ///< id, status: the daemon carries that connection no more
        relay_fin,   ///< id, generation: the other end of that claim has seen a FIN
    } kind;
    Introduction own = {};
    Peer peer = {};
    ntbc::Message message = {};
    uint64_t id = 0;
    int status = 0;
    uint32_t generation = 0;
};

class Mailbox
{
public:
    Mailbox();
    ~Mailbox();
    Mailbox(const Mailbox &) = delete;
    Mailbox &operator=(const Mailbox &) = delete;

    /// Any thread.
    void put(const LinkNews &news);
    std::optional<LinkNews> take();
    /// Readable while there is something, as far as it was not cleared by take().
    int fd() const { return fd_; }
    /// How many have not been taken. Any thread.
    size_t size();
    Orders &orders() { return orders_; }

private:
    Orders orders_;
    std::mutex lock_;
    std::deque<LinkNews> news_;
    int fd_;
};

} // namespace ntbd

#endif
