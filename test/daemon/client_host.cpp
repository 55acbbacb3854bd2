// SPDX-License-Identifier: BSD-3-Clause
// A client for the tests of whole daemons.
//   client_host SOCKET serve NAME [local]      answers each connection with what it receives
//   client_host SOCKET ask NAME BYTES [local]  sends bytes, checks that they return
//   client_host SOCKET pump NAME [local]       sends and checks until it is ended
//   client_host SOCKET attach                  says "status N"
#include <ntbclient.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <string>
#include <vector>

namespace
{
constexpr int patience_ms = 60000;

[[noreturn]] void fail(const char *what, long status)
{
    printf("failed: %s: %ld (%s)\n", what, status, strerror(static_cast<int>(-status)));
    exit(1);
}

char byte_at(uint64_t place)
{
    return static_cast<char>(place * 131 + (place >> 9));
}

// Echoes all connections, in turn, until it is killed.
int serve(ntbclient *client, const char *name, const ntbclient_options &options)
{
    ntbclient_listener *listener = nullptr;
    if (const int status = ntbclient_listen(client, name, &options, &listener); status != 0)
        fail("listen", status);
    puts("serving");
    std::vector<ntbclient_conn *> conns;
    std::vector<char> bytes(65536);
    for (;;) {
        ntbclient_conn *fresh = nullptr;
        int accepted;
        while ((accepted = ntbclient_accept(listener, &fresh)) == 0)
            conns.push_back(fresh);
        if (accepted == -ECONNRESET)
            fail("daemon", accepted);
        bool idle = true;
        for (size_t i = 0; i < conns.size(); i++) {
            ntbclient_conn *const conn = conns[i];
            const size_t room = ntbclient_writable(conn);
            // Full, or closed by the other end, which may have sent before.
            const ssize_t full = room == 0 ? ntbclient_send(conn, "", 0, 0) : 0;
            const size_t most = full == -EPIPE ? bytes.size() : std::min(room, bytes.size());
            const ssize_t got = most != 0   ? ntbclient_recv(conn, bytes.data(), most, 0)
                                : full != 0 ? full
                                            : -EAGAIN;
            if (got > 0) {
                ntbclient_send(conn, bytes.data(), static_cast<size_t>(got), 0);
                idle = false;
            } else if (got == 0 || (got < 0 && got != -EAGAIN)) {
                printf("end %zd\n", got);
                ntbclient_close(conn);
                conns.erase(conns.begin() + static_cast<std::ptrdiff_t>(i--));
                idle = false;
            }
        }
        if (!idle)
            continue;
        std::vector<pollfd> fds = {{ntbclient_fd(client), POLLIN, 0}};
        bool ready = false;
        for (ntbclient_conn *conn : conns) {
            const uint32_t event =
                ntbclient_writable(conn) != 0 ? NTBCLIENT_READABLE : NTBCLIENT_WRITABLE;
            ready = ntbclient_arm(conn, event) != 0 || ready;
            fds.push_back({ntbclient_conn_fd(conn), POLLIN, 0});
        }
        if (!ready)
            poll(fds.data(), fds.size(), patience_ms);
        for (ntbclient_conn *conn : conns)
            ntbclient_disarm(conn, NTBCLIENT_READABLE | NTBCLIENT_WRITABLE);
    }
}

// @param total 0: for ever
int ask(ntbclient *client, const char *name, ntbclient_options options, uint64_t total)
{
    ntbclient_conn *conn = nullptr;
    options.wait = 1;
    options.timeout_ms = patience_ms;
    if (const int status = ntbclient_connect(client, name, &options, &conn); status != 0)
        fail("connect", status);
    if (ntbclient_wait(conn, NTBCLIENT_WRITABLE, patience_ms) == 0)
        fail("open", -ETIMEDOUT);
    ntbclient_info info = {};
    info.size = sizeof(info);
    ntbclient_info_get(conn, &info);
    printf("peer %u\n", info.peer_uid);
    uint64_t sent = 0;
    uint64_t got = 0;
    std::vector<char> bytes(7000);
    while (total == 0 || got < total) {
        size_t some = total == 0 ? bytes.size() : std::min<uint64_t>(bytes.size(), total - sent);
        for (size_t i = 0; i < some; i++)
            bytes[i] = byte_at(sent + i);
        const ssize_t out = ntbclient_send(conn, bytes.data(), some, 0);
        if (out < 0 && out != -EAGAIN)
            fail("send", out);
        sent += out > 0 ? static_cast<uint64_t>(out) : 0;
        const ssize_t in = ntbclient_recv(conn, bytes.data(), bytes.size(), 0);
        if (in == 0 || (in < 0 && in != -EAGAIN))
            fail("receive", in);
        for (ssize_t i = 0; i < in; i++)
            if (bytes[static_cast<size_t>(i)] != byte_at(got + static_cast<uint64_t>(i)))
                fail("wrong byte", 0);
        got += in > 0 ? static_cast<uint64_t>(in) : 0;
        if (total == 0 && in > 0 && got - static_cast<uint64_t>(in) == 0)
            puts("pumping");
        if (in < 0 && (out <= 0 || sent == total)) {
            const uint32_t events =
                NTBCLIENT_READABLE | (sent == total && total != 0 ? 0 : NTBCLIENT_WRITABLE);
            if (ntbclient_wait(conn, events, patience_ms) == 0)
                fail("wait", -ETIMEDOUT);
        }
    }
    ntbclient_close(conn);
    printf("checked %llu\n", static_cast<unsigned long long>(got));
    return 0;
}
} // namespace

int main(int argc, char **argv)
{
    setvbuf(stdout, nullptr, _IOLBF, 0);
    if (argc < 3)
        return 2;
    const std::string work = argv[2];
    ntbclient *client = nullptr;
    const int status = ntbclient_attach(argv[1], &client);
    if (work == "attach") {
        printf("status %d\n", status);
        if (status == 0)
            ntbclient_detach(client);
        return 0;
    }
    if (status != 0)
        fail("attach", status);
    ntbclient_options options;
    ntbclient_options_init(&options);
    options.local = std::string(argv[argc - 1]) == "local" ? 1 : 0;
    const int result = work == "serve" ? serve(client, argv[3], options)
                       : work == "ask"
                           ? ask(client, argv[3], options, strtoull(argv[4], nullptr, 10))
                           : ask(client, argv[3], options, 0);
    ntbclient_detach(client);
    return result;
}
