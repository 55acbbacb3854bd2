// SPDX-License-Identifier: BSD-3-Clause
// Two processes with a connection of a node daemon, both polling, beside a plain ping-pong of two
// lines on the same two CPUs, in turns.
//   ntbmsg_clients [ROUNDS]                 a daemon of its own, which is on the way of no byte;
//                                           0: too short for figures, shows that it works
//   ntbmsg_clients ROUNDS SOCKET SOCKET     two daemons that run and are joined, by whatever
//   carrier
//   ntbmsg_clients --version
#include "ntbclient.h"
#include "server/listen.hpp"
#include "server/server.hpp"

#include <core_probe.hpp>
#include <output.hpp>
#include <pin.hpp>
#include <version.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

namespace
{
constexpr size_t small = 64;
constexpr size_t large = 4096;
uint64_t trips = 300000;
uint64_t writes_small = 5000000;
uint64_t writes_large = 1000000;
constexpr int patience_ms = 30000;

double now_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

[[noreturn]] void fail(const char *what, long status)
{
    fprintf(stderr, "ntbmsg_clients: %s: %s\n", what, strerror(static_cast<int>(-status)));
    exit(1);
}

bool waits; ///< where it cannot go on, instead of polling

// All of it.
void send_all(ntbclient_conn *conn, const char *data, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t sent = ntbclient_send(conn, data, bytes, 0);
        if (sent < 0 && sent != -EAGAIN)
            fail("send", sent);
        if (sent < 0 && waits)
            ntbclient_wait(conn, NTBCLIENT_WRITABLE, patience_ms);
        data += sent > 0 ? sent : 0;
        bytes -= sent > 0 ? static_cast<size_t>(sent) : 0;
    }
}

void receive_all(ntbclient_conn *conn, char *data, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t got = ntbclient_recv(conn, data, bytes, 0);
        if (got == 0 || (got < 0 && got != -EAGAIN))
            fail("receive", got == 0 ? -EPIPE : got);
        if (got < 0 && waits)
            ntbclient_wait(conn, NTBCLIENT_READABLE, patience_ms);
        data += got > 0 ? got : 0;
        bytes -= got > 0 ? static_cast<size_t>(got) : 0;
    }
}

// What the other process does, by a letter for each measurement.
void serve(ntbclient_conn *conn, int orders)
{
    std::vector<char> data(65536);
    for (char order; read(orders, &order, 1) == 1;) {
        if (order == 'p') {
            for (uint64_t i = 0; i < trips; i++) {
                receive_all(conn, data.data(), small);
                send_all(conn, data.data(), small);
            }
            continue;
        }
        uint64_t left = order == 's' ? writes_small * small : writes_large * large;
        while (left > 0) {
            const ssize_t got = ntbclient_recv(conn, data.data(), data.size(), 0);
            if (got == 0 || (got < 0 && got != -EAGAIN))
                fail("receive", got);
            if (got < 0 && waits)
                ntbclient_wait(conn, NTBCLIENT_READABLE, patience_ms);
            left -= got > 0 ? static_cast<uint64_t>(got) : 0;
        }
        send_all(conn, data.data(), 1);
    }
}

double trip_ns(ntbclient_conn *conn)
{
    char data[small] = {};
    const double begin = now_ns();
    for (uint64_t i = 0; i < trips; i++) {
        send_all(conn, data, small);
        receive_all(conn, data, small);
    }
    return (now_ns() - begin) / static_cast<double>(trips);
}

double write_ns(ntbclient_conn *conn, uint64_t writes, size_t bytes)
{
    const std::vector<char> data(bytes);
    char done;
    const double begin = now_ns();
    for (uint64_t i = 0; i < writes; i++)
        send_all(conn, data.data(), bytes);
    receive_all(conn, &done, 1);
    return (now_ns() - begin) / static_cast<double>(writes);
}

ntbclient *attach(const std::string &socket)
{
    ntbclient *client = nullptr;
    int status = -ENOENT;
    for (int tries = 0; tries < patience_ms && status != 0; tries++) {
        status = ntbclient_attach(socket.c_str(), &client);
        if (status != 0)
            usleep(1000);
    }
    if (status != 0)
        fail("attach", status);
    return client;
}

void run_child(const std::string &socket, int orders, const ntbclient_options &options)
{
    ntbclient *client = attach(socket);
    ntbclient_conn *conn = nullptr;
    if (const int status = ntbclient_connect(client, "figures", &options, &conn); status != 0)
        fail("connect", status);
    if (ntbclient_wait(conn, NTBCLIENT_WRITABLE, patience_ms) == 0)
        fail("connect", -ETIMEDOUT);
    serve(conn, orders);
    ntbclient_detach(client);
}

void measure(const std::string &socket, int orders, const ntbclient_options &options, int rounds)
{
    ntbclient *client = attach(socket);
    ntbclient_listener *listener = nullptr;
    ntbclient_conn *conn = nullptr;
    if (const int status = ntbclient_listen(client, "figures", &options, &listener); status != 0)
        fail("listen", status);
    while (ntbclient_accept(listener, &conn) == -EAGAIN)
        usleep(1000);
    const auto order = [orders](char what) {
        if (write(orders, &what, 1) != 1)
            fail("order", -errno);
    };
    printf("%12s %12s %14s %14s\n", "lines ns", "64 B trip ns", "64 B M/s", "4 KiB GB/s");
    for (int i = 0; i < rounds; i++) {
        const double lines = app::probe_core(1).value_or(0);
        order('p');
        const double trip = trip_ns(conn);
        order('s');
        const double rate = 1e3 / write_ns(conn, writes_small, small);
        order('l');
        const double stream = static_cast<double>(large) / write_ns(conn, writes_large, large);
        printf("%12.0f %12.0f %14.1f %14.2f\n", lines, trip, rate, stream);
    }
    ntbclient_detach(client);
}

int measure_between(const char *one, const char *other, int rounds)
{
    int orders[2];
    ntbclient_options options;
    ntbclient_options_init(&options);
    options.wait = 1;
    options.timeout_ms = patience_ms;
    // Where four threads share two CPUs, who polls takes the CPU from whom it waits for.
    waits = true;
    trips /= 30;
    writes_small /= 10;
    writes_large /= 10;
    if (pipe(orders) != 0)
        return 2;
    const pid_t child = fork();
    if (child == 0) {
        close(orders[1]);
        app::pin(1);
        run_child(other, orders[0], options);
        _exit(0);
    }
    app::pin(0);
    measure(one, orders[1], options, rounds);
    close(orders[1]);
    int status = 1;
    waitpid(child, &status, 0);
    return status == 0 ? 0 : 1;
}
} // namespace

int main(int argc, char **argv)
{
    if (app::show_version(argc, argv))
        return app::finish_output("ntbmsg_clients", 0);
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    if (argc == 2 && std::string(argv[1]) == "0") {
        trips /= 100;
        writes_small /= 100;
        writes_large /= 100;
        rounds = 1;
    }
    if (rounds < 1 || argc == 3 || argc > 4) {
        fputs("usage: ntbmsg_clients [ROUNDS [SOCKET SOCKET]], or --version\n", stderr);
        return 2;
    }
    if (argc == 4)
        return measure_between(argv[2], argv[3], rounds);
    char folder[] = "/tmp/ntbmsg-clients-XXXXXX";
    int orders[2];
    if (mkdtemp(folder) == nullptr || pipe(orders) != 0)
        return 2;
    ntbd::Config config;
    config.socket = std::string(folder) + "/socket";
    ntbclient_options options;
    ntbclient_options_init(&options);
    options.local = 1;
    options.wait = 1;
    options.timeout_ms = patience_ms;
    const pid_t child = fork();
    if (child == 0) {
        close(orders[1]);
        app::pin(1);
        run_child(config.socket, orders[0], options);
        _exit(0);
    }
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    ntbd::Mailbox mailbox;
    int status = 1;
    {
        std::string error;
        ntbd::ListeningSocket listener;
        if (!listener.open(config.socket, 0600, &error)) {
            fprintf(stderr, "ntbmsg_clients: %s\n", error.c_str());
            kill(child, SIGKILL);
            return 1;
        }
        ntbd::Server server(listener.fd(), config, mailbox, [] {});
        std::thread thread([&] { server.run(); });
        app::pin(0);
        measure(config.socket, orders[1], options, rounds);
        close(orders[1]);
        waitpid(child, &status, 0);
        pthread_kill(thread.native_handle(), SIGTERM);
        thread.join();
    }
    unlink((config.socket + ".lock").c_str());
    rmdir(folder);
    return status == 0 ? 0 : 1;
}
