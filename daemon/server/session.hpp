// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTBD_SERVER_SESSION_HPP
#define NTBD_SERVER_SESSION_HPP

#include "server/server.hpp"
#include "server/shown.hpp"

namespace ntbd
{

/// A connection of the daemon's socket. Its descriptors go by let_go().
struct Server::Session {
    /// The message names the user who may have put something into a bell.
    struct Unsent {
        ntbc::Message message;
        int fds[ntbc::fds_max];
        int count;
    };
    /// Whose socket is being looked at, and closed.
    struct Claiming {
        ntbc::Message message;
        Shown shown;
    };

    uint64_t id;
    int fd;
    User user;
    Stage stage;
    int64_t until_ms; ///< by which it has greeted
    bool doomed = false;
    bool held = false;                  ///< not watched: nothing is read from it now
    std::shared_ptr<Claiming> claiming; ///< the thread that looks has it, too
    std::deque<Unsent> unsent;          ///< with descriptors of its own

    Session(uint64_t number, int socket, const User &who, Stage first, int64_t until)
        : id(number), fd(socket), user(who), stage(first), until_ms(until)
    {
    }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;
};

} // namespace ntbd

#endif
