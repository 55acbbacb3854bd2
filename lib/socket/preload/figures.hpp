// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_PRELOAD_FIGURES_HPP
#define NTB_SOCKET_PRELOAD_FIGURES_HPP

#include "preload/calls.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ntb::socket::preload
{

/// Why connections that the library was asked about stayed TCP, or went back to it.
#define NTB_REASONS(X)                                                                             \
    X(claimed, "were shown to the daemon")                                                         \
    X(no_rule, "stay TCP: no line 'use ntb' fits")                                                 \
    X(no_host, "stay TCP: the peer is not in the host map")                                        \
    X(no_daemon, "stay TCP: no daemon, or no room at it")                                          \
    X(unmatched, "stay TCP: the other end was not shown as this one's mirror in time")             \
    X(refused, "stay TCP: refused by the daemon")                                                  \
    X(other_daemon, "stay TCP: of another daemon than this program's")                             \
    X(not_tcp, "stay as they are: not TCP")                                                        \
    X(no_room, "stay TCP: too many connections or descriptors")                                    \
    X(shared, "were used while another process had them too: TCP until it has closed them")        \
    X(unlisted, "stay TCP: in an epoll set whose members /proc does not show")                     \
    X(options, "stay TCP: socket options that rings do not serve")                                 \
    X(fast_open, "stay TCP: TCP Fast Open")                                                        \
    X(io_uring, "stay TCP: the program uses io_uring")                                             \
    X(stdio, "went back to TCP: given to stdio")                                                   \
    X(broken_off, "were reset: the peer did not go back to TCP")                                   \
    X(unseen, "were closed unseen")                                                                \
    X(inherited, "were open when the program was started")                                         \
    X(handed_on, "went back to TCP: given to another program")                                     \
    X(not_looked_at, "stay as they are, not looked at: no daemon had answered just before")

enum class Reason {
#define NTB_NAME(name, text) name,
    NTB_REASONS(NTB_NAME)
#undef NTB_NAME
};

constexpr const char *const reason_texts[] = {
#define NTB_TEXT(name, text) text,
    NTB_REASONS(NTB_TEXT)
#undef NTB_TEXT
};
constexpr std::size_t reason_count = sizeof(reason_texts) / sizeof(reason_texts[0]);

/// One page that a process and its children share. It is a memory file of this name, which the
/// process keeps open: who may look at the process finds it below /proc/PID/fd.
struct Figures {
    static constexpr const char *name = "ntbsocket-figures";
    static constexpr std::uint32_t right_magic = 0x6e746273, right_version = 4;

    std::uint32_t magic, version;
    std::int32_t pid;
    std::uint32_t reserved;
    char program[32];
    std::atomic<std::uint64_t> matched;                  ///< claims that found their mirror
    std::atomic<std::uint64_t> ring_received, ring_sent; ///< bytes by rings
    std::atomic<std::uint64_t> reasons[reason_count];
    std::atomic<std::uint64_t> received, sent;    ///< all bytes of wanted connections, with -v
    std::atomic<std::uint64_t> calls[call_count]; ///< on wanted connections, with -v
};
static_assert(sizeof(Figures) <= 4096);
// What tools/ntb_sockets/rings.py reads.
static_assert(offsetof(Figures, matched) == 48);

} // namespace ntb::socket::preload

#endif
