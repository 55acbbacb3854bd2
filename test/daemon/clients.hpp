// SPDX-License-Identifier: BSD-3-Clause
// Two clients: both at one daemon, or one at each of two that are joined.
#ifndef TEST_DAEMON_CLIENTS_HPP
#define TEST_DAEMON_CLIENTS_HPP

#include <algorithm>
#include <functional>

#include <unistd.h>

#include "hosts.hpp"

namespace ntbd::test
{

/// How the two ends are joined.
enum class Way {
    local,  ///< by one daemon
    direct, ///< by two, with one memory
    carried ///< through two
};

class Clients : public testing::TestWithParam<Way>
{
protected:
    void SetUp() override
    {
        ntbclient_options_init(&options);
        options.local = is_local() ? 1 : 0;
        options.timeout_ms = long_ms;
        one.config.ring_bytes = 16384;
        other.config.ring_bytes = 16384;
        if (is_carried())
            plug(cable, one, other);
        one.start();
        if (is_local())
            return;
        other.start();
        join(one, other);
    }
    static bool is_local() { return GetParam() == Way::local; }
    static bool is_carried() { return GetParam() == Way::carried; }
    /// Where the ends share memory a fact is seen at once, else in a while.
    static bool soon(const std::function<bool()> &fact)
    {
        return is_carried() ? await(fact) : fact();
    }
    static ssize_t receive(ntbclient_conn *conn, char *to, size_t bytes, uint32_t flags = 0)
    {
        soon([&] { return ntbclient_readable(conn) >= std::min<size_t>(bytes, 1) || ends(conn); });
        return ntbclient_recv(conn, to, bytes, flags);
    }
    static bool ends(ntbclient_conn *conn)
    {
        char byte;
        const ssize_t got = ntbclient_recv(conn, &byte, 1, NTBCLIENT_PEEK);
        return got == 0 || (got < 0 && got != -EAGAIN);
    }
    Daemon &far() { return is_local() ? one : other; }
    /// Whether connections or their bytes are charged. A user without a client is unknown.
    static bool charges(const Server::Snapshot &now)
    {
        const auto used = now.used.find(getuid());
        return used != now.used.end() && (used->second.connections != 0 || used->second.bytes != 0);
    }

    static void expect_error(ntbclient_conn *conn, int error)
    {
        EXPECT_TRUE(await([&] {
            ntbclient_wait(conn, NTBCLIENT_READABLE, 1);
            return info_of(conn).error == error;
        })) << info_of(conn).error;
        EXPECT_EQ(info_of(conn).state, NTBCLIENT_ENDED);
    }

    Folder folder;
    Cable cable;
    Daemon one{folder.path + "/one.sock"};
    Daemon other{folder.path + "/other.sock"};
    ntbclient_options options;
};

} // namespace ntbd::test

#endif
