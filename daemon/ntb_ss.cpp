// SPDX-License-Identifier: BSD-3-Clause
// ntb-ss: lists the connections of a node daemon, and revokes them; lists programs under ntb-run.
#include <ntbclient.h>

#include "printable.hpp"
#include "programs.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <getopt.h>
#include <optional>
#include <string>

namespace
{
constexpr const char *help =
    "ntb-ss: lists the connections of a node daemon: those of the caller's user, or all for root\n"
    "\n"
    "  ntb-ss SOCKET                lists them\n"
    "  ntb-ss SOCKET --revoke ID    ends one\n"
    "  ntb-ss --programs            lists the programs under ntb-run, and why connections of "
    "theirs\n"
    "                               are TCP: the caller's, or all for root\n"
    "  ntb-ss --help | --version\n"
    "\n"
    "HOST is where the other end is: local, peer (direct), or relay (at the peer's host, through "
    "the daemons).\n"
    "SENT and RECEIVED are bytes, as counted in the client's rings. A TCP connection whose bytes "
    "may go\n"
    "by rings is named by the addresses of its ends; send= and receive= are the states of its "
    "directions\n"
    "(tcp, granted, ring, end, broken), tcp= its bytes sent and received by TCP.\n"
    "segments= behind a name: bytes of the other end's segments that this end has opened.\n";

const char *state_name(uint32_t state)
{
    return state == NTBCLIENT_CONNECTING ? "connecting"
           : state == NTBCLIENT_OPEN     ? "open"
                                         : "ended";
}

std::string end_name(const ntbclient_entry &entry, int which)
{
    constexpr uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    const uint8_t *address = entry.address[which];
    char text[INET6_ADDRSTRLEN];
    const bool four = memcmp(address, mapped, sizeof(mapped)) == 0;
    inet_ntop(four ? AF_INET : AF_INET6, four ? address + 12 : address, text, sizeof(text));
    char name[sizeof(text) + 16];
    snprintf(name, sizeof(name), four ? "%s:%u" : "[%s]:%u", text, entry.port[which]);
    return name;
}

const char *direction_name(uint32_t direction)
{
    constexpr const char *names[] = {"tcp", "granted", "ring", "end", "broken"};
    return direction <= NTBCLIENT_BROKEN ? names[direction] : "?";
}

// Both ends, and how each direction goes.
std::string what(const ntbclient_entry &entry)
{
    if (entry.claimed == 0)
        return ntbd::printable(entry.name) +
               (entry.segment_bytes != 0 ? " segments=" + std::to_string(entry.segment_bytes) : "");
    return end_name(entry, 0) + ">" + end_name(entry, 1) +
           " send=" + direction_name(entry.sending) +
           " receive=" + direction_name(entry.receiving) +
           " tcp=" + std::to_string(entry.sent_by_tcp) + "/" +
           std::to_string(entry.received_by_tcp);
}

void print(const ntbclient_entry &entry)
{
    printf("%8" PRIu64 " %-10s %-9s %-5s %6u %8u %8u %14" PRIu64 " %14" PRIu64 " %s\n", entry.id,
           state_name(entry.state), entry.end == 0 ? "connected" : "accepted",
           entry.local != 0     ? "local"
           : entry.carried != 0 ? "relay"
                                : "peer",
           entry.uid, entry.pid, entry.ring_bytes, entry.sent, entry.received, what(entry).c_str());
}

int list(ntbclient *client)
{
    printf("%8s %-10s %-9s %-5s %6s %8s %8s %14s %14s %s\n", "ID", "STATE", "END", "HOST", "UID",
           "PID", "RING", "SENT", "RECEIVED", "NAME");
    ntbclient_entry entries[32];
    uint64_t after = 0;
    for (;;) {
        entries[0].size = sizeof(entries[0]);
        const int count = ntbclient_list(client, after, entries, 32);
        if (count <= 0)
            return count;
        for (int i = 0; i < count; i++)
            print(entries[i]);
        after = entries[count - 1].id;
    }
}

void list_programs()
{
    printf("%8s %8s %s\n", "PID", "MATCHED", "PROGRAM");
    for (const ntbd::Program &program : ntbd::find_programs()) {
        printf("%8d %8" PRIu64 " %s\n", program.pid, program.matched, program.name.c_str());
        for (const ntbd::Program::Why &why : program.reasons)
            printf("%17" PRIu64 " %s\n", why.connections, why.text);
    }
}

int fail(const char *what, int status)
{
    fprintf(stderr, "ntb-ss: %s: %s\n", what, strerror(-status));
    return 1;
}

int usage()
{
    fputs("ntb-ss: expected: ntb-ss SOCKET [--revoke ID], or ntb-ss --programs\n", stderr);
    return 2;
}
} // namespace

int main(int argc, char **argv)
{
    const option options[] = {{"revoke", required_argument, nullptr, 'r'},
                              {"programs", no_argument, nullptr, 'p'},
                              {"help", no_argument, nullptr, 'h'},
                              {"version", no_argument, nullptr, 'v'},
                              {}};
    std::optional<uint64_t> revoked;
    bool programs = false;
    for (int found; (found = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
        if (found == 'h' || found == 'v') {
            fputs(found == 'h' ? help : "ntb-ss " NTBD_VERSION "\n", stdout);
            return 0;
        }
        if (found == 'p') {
            programs = true;
            continue;
        }
        if (found != 'r')
            return 2;
        const char *end = optarg + strlen(optarg);
        uint64_t id = 0;
        const auto [rest, error] = std::from_chars(optarg, end, id);
        if (error != std::errc{} || rest != end)
            return usage();
        revoked = id;
    }
    if (programs && !revoked && optind == argc) {
        list_programs();
        return fflush(stdout) == 0 ? 0 : fail("standard output", -errno);
    }
    if (programs || optind + 1 != argc)
        return usage();
    ntbclient *client = nullptr;
    if (const int status = ntbclient_attach(argv[optind], &client); status != 0)
        return fail(argv[optind], status);
    const int status = revoked ? ntbclient_revoke(client, *revoked) : list(client);
    ntbclient_detach(client);
    if (status < 0)
        return fail(revoked ? ("connection " + std::to_string(*revoked)).c_str() : argv[optind],
                    status);
    return fflush(stdout) == 0 ? 0 : fail("standard output", -errno);
}
