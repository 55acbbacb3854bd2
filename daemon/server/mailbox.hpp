// SPDX-License-Identifier: BSD-3-Clause
// What the thread of the device tells the server.
#ifndef NTBD_SERVER_MAILBOX_HPP
#define NTBD_SERVER_MAILBOX_HPP

#include "server/introduction.hpp"

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
    } kind;
    Introduction own = {};
    Peer peer = {};
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

private:
    std::mutex lock_;
    std::deque<LinkNews> news_;
    int fd_;
};

} // namespace ntbd

#endif
