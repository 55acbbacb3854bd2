// SPDX-License-Identifier: BSD-3-Clause
// Peers of the kernel: AF_UNIX and TCP over loopback, polled without sleeping, with messages of a
// known length in a stream.
#include "peers/pair/run.hpp"
#include "peers/pair/stream.hpp"

#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace peers
{

namespace
{

constexpr int buffer_bytes = 1 << 20; ///< of the kernel, per direction
constexpr uint64_t connect_ns = 10000000000u;

class Socket : public StreamLink<Socket>
{
public:
    static std::unique_ptr<Socket> open(const Options &options, std::string &error);
    ~Socket() { close(m_fd); }
    Socket(const Socket &) = delete;
    Socket &operator=(const Socket &) = delete;

    size_t max_message() const { return largest_message; }
    ssize_t put(const std::byte *from, size_t n);
    ssize_t take(std::byte *to, size_t n);

private:
    explicit Socket(int fd) : StreamLink(largest_message), m_fd(fd) {}

    int m_fd;
};

union Address {
    sockaddr any;
    sockaddr_un local;
    sockaddr_in internet;
};

/// The port of a listening TCP socket is the kernel's choice: it goes through a file.
std::string port_file(const Options &options)
{
    return options.folder + "/port";
}

socklen_t local_address(const Options &options, Address &address)
{
    address.local.sun_family = AF_UNIX;
    const std::string path = options.folder + "/socket";
    path.copy(address.local.sun_path, sizeof(address.local.sun_path) - 1);
    return sizeof(address.local);
}

socklen_t loopback_address(in_port_t port, Address &address)
{
    address.internet.sin_family = AF_INET;
    address.internet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.internet.sin_port = port;
    return sizeof(address.internet);
}

/// Publishes where we listen; complete as soon as it exists.
bool publish_port(int fd, const Options &options)
{
    Address address = {};
    socklen_t length = sizeof(address);
    if (getsockname(fd, &address.any, &length) != 0)
        return false;
    const std::string name = port_file(options);
    std::FILE *file = std::fopen((name + ".new").c_str(), "w");
    if (!file)
        return false;
    fprintf(file, "%u\n", unsigned{address.internet.sin_port});
    return fclose(file) == 0 && rename((name + ".new").c_str(), name.c_str()) == 0;
}

bool find_port(const Options &options, in_port_t &port)
{
    std::FILE *file = std::fopen(port_file(options).c_str(), "r");
    unsigned number = 0;
    const bool found = file && fscanf(file, "%u", &number) == 1;
    if (file)
        fclose(file);
    port = static_cast<in_port_t>(number);
    return found;
}

/// @return the connected socket, or -1 with errno
int accept_one(const Options &options, bool tcp)
{
    Address address = {};
    const socklen_t length = tcp ? loopback_address(0, address) : local_address(options, address);
    const int listener = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0)
        return -1;
    const timeval patience{static_cast<time_t>(connect_ns / 1000000000u), 0};
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    int fd = -1;
    if (bind(listener, &address.any, length) == 0 && listen(listener, 1) == 0 &&
        (!tcp || publish_port(listener, options)))
        fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    const int error = errno;
    close(listener);
    errno = error;
    return fd;
}

/// One try. @return the connected socket, or -1 with errno
int try_connect(const Options &options, bool tcp)
{
    in_port_t port = 0;
    if (tcp && !find_port(options, port)) {
        errno = ECONNREFUSED;
        return -1;
    }
    Address address = {};
    const socklen_t length =
        tcp ? loopback_address(port, address) : local_address(options, address);
    const int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, &address.any, length) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int connect_to(const Options &options, bool tcp)
{
    const uint64_t give_up = monotonic_ns() + connect_ns;
    for (;;) {
        const int fd = try_connect(options, tcp);
        if (fd >= 0 || monotonic_ns() > give_up)
            return fd;
        usleep(1000);
    }
}

/// @return bytes, -EAGAIN or another negative errno
ssize_t moved(ssize_t done)
{
    if (done >= 0)
        return done;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
}

} // namespace

std::unique_ptr<Socket> Socket::open(const Options &options, std::string &error)
{
    const bool tcp = options.form == "tcp";
    if (!tcp && options.form != "unix") {
        error = "--form unix or tcp";
        return nullptr;
    }
    const int fd = options.side == 1 ? accept_one(options, tcp) : connect_to(options, tcp);
    if (fd < 0) {
        error = options.form + ": " + strerror(errno);
        return nullptr;
    }
    const int on = 1;
    if (tcp)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(buffer_bytes));
    return std::unique_ptr<Socket>(new Socket(fd));
}

ssize_t Socket::put(const std::byte *from, size_t n)
{
    return moved(::send(m_fd, from, n, MSG_DONTWAIT | MSG_NOSIGNAL));
}

ssize_t Socket::take(std::byte *to, size_t n)
{
    return moved(recv(m_fd, to, n, MSG_DONTWAIT));
}

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run_peer<peers::Socket>(argc, argv);
}
