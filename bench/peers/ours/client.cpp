// SPDX-License-Identifier: BSD-3-Clause
// Ours: messages of a known length in a connection of the node daemon, by the client library.
//   peer_client ... -- SOCKET       of this side's daemon
#include "peers/pair/run.hpp"
#include "peers/pair/stream.hpp"

#include "ntbclient.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace peers
{

namespace
{

constexpr int patience_ms = 10000;
constexpr size_t longest = size_t{1} << 20;

class Client : public StreamLink<Client>
{
public:
    static std::unique_ptr<Client> open(const Options &options, std::string &error);
    ~Client();
    Client(const Client &) = delete;
    Client &operator=(const Client &) = delete;

    size_t max_message() const { return longest; }
    ssize_t put(const std::byte *from, size_t n) { return ntbclient_send(m_conn, from, n, 0); }
    ssize_t take(std::byte *to, size_t n) { return ntbclient_recv(m_conn, to, n, 0); }

private:
    Client() : StreamLink(longest) {}
    int connect(const Options &options);
    int accept(const ntbclient_options &how);

    ntbclient *m_client = nullptr;
    ntbclient_listener *m_listener = nullptr;
    ntbclient_conn *m_conn = nullptr;
};

std::unique_ptr<Client> Client::open(const Options &options, std::string &error)
{
    if (options.words.size() != 1) {
        error = "behind -- the daemon's socket";
        return nullptr;
    }
    std::unique_ptr<Client> made(new Client);
    const int failed = made->connect(options);
    if (failed == 0)
        return made;
    error = options.words[0] + ": " + strerror(-failed);
    return nullptr;
}

Client::~Client()
{
    ntbclient_close(m_conn);
    ntbclient_listener_close(m_listener);
    ntbclient_detach(m_client);
}

int Client::connect(const Options &options)
{
    ntbclient_options how;
    ntbclient_options_init(&how);
    how.wait = 1;
    how.timeout_ms = patience_ms;
    if (const int failed = ntbclient_attach(options.words[0].c_str(), &m_client); failed != 0)
        return failed;
    if (options.side == 1)
        return accept(how);
    if (const int failed = ntbclient_connect(m_client, "peers", &how, &m_conn); failed != 0)
        return failed;
    return ntbclient_wait(m_conn, NTBCLIENT_WRITABLE, patience_ms) != 0 ? 0 : -ETIMEDOUT;
}

int Client::accept(const ntbclient_options &how)
{
    if (const int failed = ntbclient_listen(m_client, "peers", &how, &m_listener); failed != 0)
        return failed;
    const uint64_t give_up = monotonic_ns() + uint64_t{patience_ms} * 1000000;
    for (;;) {
        const int failed = ntbclient_accept(m_listener, &m_conn);
        if (failed != -EAGAIN)
            return failed;
        if (monotonic_ns() > give_up)
            return -ETIMEDOUT;
        usleep(1000);
    }
}

} // namespace

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run_peer<peers::Client>(argc, argv);
}
