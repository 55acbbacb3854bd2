// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTBD_SERVER_SESSION_HPP
#define NTBD_SERVER_SESSION_HPP

#include "server/server.hpp"

#include <unistd.h>

namespace ntbd
{

/// A connection of the daemon's socket.
struct Server::Session {
    struct Unsent {
        ntbc::Message message;
        int fds[ntbc::fds_max];
        int count;
    };

    uint64_t id;
    int fd;
    User user;
    Stage stage;
    int64_t until_ms; ///< by which it has greeted
    bool doomed = false;
    std::deque<Unsent> unsent; ///< with descriptors of its own

    Session(uint64_t number, int socket, const User &who, Stage first, int64_t until)
        : id(number), fd(socket), user(who), stage(first), until_ms(until)
    {
    }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;
    ~Session()
    {
        for (const Unsent &one : unsent)
            for (int i = 0; i < one.count; i++)
                close(one.fds[i]);
        close(fd);
    }
};

} // namespace ntbd

#endif
