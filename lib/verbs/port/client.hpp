// SPDX-License-Identifier: BSD-3-Clause
// What those who use the node daemon's client library ask of it.
#ifndef NTB_VERBS_PORT_CLIENT_HPP
#define NTB_VERBS_PORT_CLIENT_HPP

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>

#include <time.h>

#include <ntbclient.h>

namespace ntb::verbs
{

constexpr std::uint64_t second = 1000000000;

/// In nanoseconds.
inline std::uint64_t monotonic()
{
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * second +
           static_cast<std::uint64_t>(time.tv_nsec);
}

/// A connect lasts as long as the daemons are joined: one that has no CPU answers late, and one
/// that is gone ends it.
/// @param local  between two processes of this host
inline ntbclient_options options_of(bool local)
{
    ntbclient_options options;
    ntbclient_options_init(&options);
    options.local = local;
    options.timeout_ms = 3600000; // the longest
    return options;
}

inline ntbclient_info info_of(ntbclient_conn *conn)
{
    ntbclient_info info = {};
    info.size = sizeof(info);
    ntbclient_info_get(conn, &info);
    return info;
}

/// Of a connection that did not come about. Programs learn no more than that the peer does not
/// answer, so a line says what they do not, once in a process.
inline void tell_refusal(int error)
{
    static std::atomic<bool> is_told{false};
    if (error == -EDQUOT && !is_told.exchange(true))
        fprintf(stderr, "ntbverbs: a daemon admits no more connections of this user or the "
                        "peer's: 'quota' in its configuration\n");
}

} // namespace ntb::verbs

#endif
