// SPDX-License-Identifier: BSD-3-Clause
// What calls on TCP connections cost under the socket preload where nothing goes by ring, beside
// libc's in the same process. One thread has both ends of each connection, so none sleeps and has
// to be woken; the two are timed in turns of some hundred microseconds, so what the machine does
// beside them meets both. A second user of libc's calls, with connections of its own, is the
// control: how far its ratio is from 1 is the error of the method.
//   ntb-run ... peer_calls MILLISECONDS ADDRESS    for each kind of call, connections to ADDRESS
#include "options.hpp"
#include "version.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <vector>

namespace
{

/** The calls that are compared. */
struct Calls {
    decltype(&::socket) socket = ::socket;
    decltype(&::connect) connect = ::connect;
    decltype(&::accept) accept = ::accept;
    decltype(&::close) close = ::close;
    decltype(&::send) send = ::send;
    decltype(&::recv) recv = ::recv;
    decltype(&::read) read = ::read;
    decltype(&::write) write = ::write;
    int (*poll)(pollfd *, nfds_t, int) = ::poll;
    decltype(&::epoll_create1) epoll_create1 = ::epoll_create1;
    decltype(&::epoll_ctl) epoll_ctl = ::epoll_ctl;
    decltype(&::epoll_wait) epoll_wait = ::epoll_wait;
};

[[noreturn]] void give_up(const char *what, const char *why)
{
    std::fprintf(stderr, "peer_calls: %s: %s\n", what, why);
    std::exit(2);
}

void must(bool good, const char *what)
{
    if (!good)
        give_up(what, std::strerror(errno));
}

template <typename Function>
void find(void *library, const char *name, Function &function)
{
    void *found = dlsym(library, name);
    if (!found)
        give_up(name, "not in libc");
    std::memcpy(&function, &found, sizeof(function));
}

/** What a program without the preload would get. */
Calls libc_calls()
{
    void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        give_up("libc.so.6", dlerror());
    Calls c;
    find(library, "socket", c.socket);
    find(library, "connect", c.connect);
    find(library, "accept", c.accept);
    find(library, "close", c.close);
    find(library, "send", c.send);
    find(library, "recv", c.recv);
    find(library, "read", c.read);
    find(library, "write", c.write);
    find(library, "poll", c.poll);
    find(library, "epoll_create1", c.epoll_create1);
    find(library, "epoll_ctl", c.epoll_ctl);
    find(library, "epoll_wait", c.epoll_wait);
    return c;
}

constexpr size_t most_bytes = 4096;

/** A connection of one user of calls, with both its ends, and a set with the second one. */
class Ends
{
public:
    Ends(const Calls &calls, const sockaddr_in &address);
    ~Ends();
    Ends(const Ends &) = delete;
    Ends &operator=(const Ends &) = delete;

    void send_and_recv();
    void write_and_read();
    void poll_each();
    void echo();
    void connect_and_close();
    void serve_one();

private:
    void connect_pair(int pair[2]);
    void ask();
    void answer();

    const Calls &m_calls;
    sockaddr_in m_address;
    int m_listener;
    int m_set;
    int m_ends[2];
    std::array<char, most_bytes> m_bytes{};
};

constexpr size_t small = 64;

Ends::Ends(const Calls &calls, const sockaddr_in &address) : m_calls(calls), m_address(address)
{
    m_listener = calls.socket(AF_INET, SOCK_STREAM, 0);
    must(m_listener >= 0, "socket");
    socklen_t length = sizeof(m_address);
    auto *const name = reinterpret_cast<sockaddr *>(&m_address);
    must(bind(m_listener, name, length) == 0 && listen(m_listener, 1) == 0, "bind");
    must(getsockname(m_listener, name, &length) == 0, "getsockname");
    connect_pair(m_ends);
    m_set = calls.epoll_create1(EPOLL_CLOEXEC);
    must(m_set >= 0, "epoll_create1");
    epoll_event event = {.events = EPOLLIN, .data = {.fd = m_ends[1]}};
    must(calls.epoll_ctl(m_set, EPOLL_CTL_ADD, m_ends[1], &event) == 0, "epoll_ctl");
}

Ends::~Ends()
{
    for (const int fd : {m_ends[0], m_ends[1], m_set, m_listener})
        m_calls.close(fd);
}

void Ends::connect_pair(int pair[2])
{
    pair[0] = m_calls.socket(AF_INET, SOCK_STREAM, 0);
    must(pair[0] >= 0, "socket");
    must(m_calls.connect(pair[0], reinterpret_cast<const sockaddr *>(&m_address),
                         sizeof(m_address)) == 0,
         "connect");
    pair[1] = m_calls.accept(m_listener, nullptr, nullptr);
    must(pair[1] >= 0, "accept");
    const int on = 1;
    for (int i = 0; i < 2; i++)
        must(setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0, "TCP_NODELAY");
}

void Ends::ask()
{
    must(m_calls.send(m_ends[0], m_bytes.data(), small, 0) == small, "send");
}

void Ends::answer()
{
    must(m_calls.recv(m_ends[1], m_bytes.data(), small, 0) == small, "recv");
}

void Ends::send_and_recv()
{
    ask();
    answer();
}

void Ends::write_and_read()
{
    must(m_calls.write(m_ends[0], m_bytes.data(), most_bytes) == most_bytes, "write");
    must(m_calls.read(m_ends[1], m_bytes.data(), most_bytes) == most_bytes, "read");
}

void Ends::poll_each()
{
    pollfd entry = {.fd = m_ends[1], .events = POLLIN, .revents = 0};
    ask();
    must(m_calls.poll(&entry, 1, -1) == 1, "poll");
    answer();
}

/** What a server that has a set does for a request, and its client. */
void Ends::echo()
{
    epoll_event event;
    ask();
    must(m_calls.epoll_wait(m_set, &event, 1, -1) == 1, "epoll_wait");
    answer();
    must(m_calls.send(m_ends[1], m_bytes.data(), small, 0) == small, "send");
    must(m_calls.recv(m_ends[0], m_bytes.data(), small, 0) == small, "recv");
}

void Ends::connect_and_close()
{
    int pair[2];
    connect_pair(pair);
    must(m_calls.close(pair[0]) == 0 && m_calls.close(pair[1]) == 0, "close");
}

/** A short connection to a server that has a set. */
void Ends::serve_one()
{
    int pair[2];
    connect_pair(pair);
    epoll_event event = {.events = EPOLLIN, .data = {.fd = pair[1]}};
    must(m_calls.epoll_ctl(m_set, EPOLL_CTL_ADD, pair[1], &event) == 0, "epoll_ctl");
    must(m_calls.send(pair[0], m_bytes.data(), small, 0) == small, "send");
    must(m_calls.epoll_wait(m_set, &event, 1, -1) == 1, "epoll_wait");
    must(m_calls.recv(pair[1], m_bytes.data(), small, 0) == small, "recv");
    must(m_calls.close(pair[0]) == 0 && m_calls.close(pair[1]) == 0, "close");
}

struct Kind {
    const char *name;
    void (Ends::*once)();
    int times; ///< in a turn
    size_t
        most_turns; ///< what is closed stays in TIME_WAIT for a minute, of which a host has so many
};

constexpr size_t unlimited = SIZE_MAX;
constexpr Kind kinds[] = {
    {"send and recv, 64 B", &Ends::send_and_recv, 10, unlimited},
    {"write and read, 4 KiB", &Ends::write_and_read, 10, unlimited},
    {"send, poll and recv", &Ends::poll_each, 10, unlimited},
    {"an echo with epoll_wait", &Ends::echo, 5, unlimited},
    {"connect, accept and two closes", &Ends::connect_and_close, 2, 3000},
    {"a short connection, with epoll", &Ends::serve_one, 2, 3000},
};

double now_ns()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

/** `values` are put in order. */
double quantile(std::vector<double> &values, double part)
{
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

enum User { plain, preload, control, users };
/// Each is as often behind each other one.
constexpr User orders[][users] = {{plain, preload, control}, {plain, control, preload},
                                  {preload, plain, control}, {preload, control, plain},
                                  {control, plain, preload}, {control, preload, plain}};

struct Taken {
    std::vector<double> ns[users];
    std::vector<double> ratio, control_ratio; ///< to libc's, turn by turn
};

double spell(Ends &ends, const Kind &kind)
{
    const double begin = now_ns();
    for (int i = 0; i < kind.times; i++)
        (ends.*kind.once)();
    return (now_ns() - begin) / kind.times;
}

/** Connections last for some hundred turns: where the kernel puts one is luck, too. */
void take_turns(const Calls &libc, const Calls &here, const sockaddr_in &address, const Kind &kind,
                Taken &taken)
{
    constexpr size_t turns = 300;
    Ends first(libc, address), tested(here, address), second(libc, address);
    Ends *const all[users] = {&first, &tested, &second};
    for (size_t turn = 0; turn < turns; turn++) {
        double ns[users];
        for (const User user : orders[turn % std::size(orders)])
            ns[user] = spell(*all[user], kind);
        for (size_t user = 0; user < users; user++)
            taken.ns[user].push_back(ns[user]);
        taken.ratio.push_back(ns[preload] / ns[plain]);
        taken.control_ratio.push_back(ns[control] / ns[plain]);
    }
}

void measure(const Calls &libc, const Calls &here, const sockaddr_in &address, const Kind &kind,
             uint64_t run_ms)
{
    Taken taken;
    const double end = now_ns() + static_cast<double>(run_ms) * 1e6;
    do
        take_turns(libc, here, address, kind, taken);
    while (now_ns() < end && taken.ratio.size() < kind.most_turns);
    std::printf("{\"call\":\"%s\",\"libc_ns\":%.1f,\"preload_ns\":%.1f,\"ratio\":%.4f,\"low\":%.4f,"
                "\"high\":%.4f,"
                "\"control\":%.4f,\"turns\":%zu}\n",
                kind.name, quantile(taken.ns[plain], 0.5), quantile(taken.ns[preload], 0.5),
                quantile(taken.ratio, 0.5), quantile(taken.ratio, 0.25),
                quantile(taken.ratio, 0.75), quantile(taken.control_ratio, 0.5),
                taken.ratio.size());
    std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv)
{
    if (app::show_version(argc, argv))
        return 0;
    uint64_t run_ms = 0;
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    if (argc != 3 || !app::parse_number(argv[1], run_ms) || run_ms > 10000 ||
        inet_pton(AF_INET, argv[2], &address.sin_addr) != 1)
        give_up("usage", "MILLISECONDS, 0 to 10000, and the IPv4 ADDRESS of the server");
    const Calls here, libc = libc_calls();
    if (here.send == libc.send)
        give_up("send", "is libc's; start it under the preload");
    for (const Kind &kind : kinds)
        measure(libc, here, address, kind, run_ms);
    return 0;
}
