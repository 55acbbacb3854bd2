// SPDX-License-Identifier: BSD-3-Clause
// What the kernel says of a TCP socket (doc/socket-protocol.md, section 2).
#ifndef NTB_SOCKET_KERNEL_SHADOW_HPP
#define NTB_SOCKET_KERNEL_SHADOW_HPP

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>

#include <sys/types.h>
#include <sys/uio.h>

namespace ntb::socket::kernel
{

/// Bytes that the sender has written. Nothing: the kernel was too busy with them to say.
/// @param connected  its side made the connection
/// @param expected   an answer that is easier to have
std::optional<std::uint64_t> bytes_written(int fd, bool connected, std::uint64_t expected);

/// Bytes that the receiver has taken. Nothing: as above.
/// @param expected  counts where the kernel has forgotten whether a FIN came
std::optional<std::uint64_t> bytes_taken(int fd, std::uint64_t expected);

/// The kernel's own call, without waiting. One part goes by the call that programs make most often:
/// a sandbox may refuse the others. @return bytes, or a negative errno
ssize_t send(int fd, const iovec *parts, int n, int flags);
ssize_t receive(int fd, const iovec *parts, int n, int flags);

/// From a socket that has bytes to a pipe. @return as receive()
ssize_t splice(int fd, int pipe, std::size_t most);

/// Bytes that can be read at once.
std::uint64_t bytes_queued(int fd);

/// Whether the next byte is an urgent one, or follows it, as SIOCATMARK says.
bool is_at_mark(int fd);

/// poll() without waiting. @return POLL* bits of @p events, and POLLERR and POLLHUP
std::uint32_t events_of(int fd, std::uint32_t events);

/// Whether the connection was reset, or another error has ended it. POLLERR alone does not say so:
/// with bytes that were sent without a copy, and the like, the kernel shows by it that it has
/// something in the socket's queue of errors, and goes on.
/// @param events  as events_of() has just said
bool is_reset(int fd, std::uint32_t events);

/// Whether the peer has said its end: what events_of() says of one is also what this end's own
/// shutdown() has made.
bool has_fin(int fd);

/// Who polls a ring asks the kernel once in some milliseconds: what it has to say there ends the
/// stream, and orderly ends are in the ring.
/// @param last  when it was asked; set to now if it is time again
bool is_time(std::uint64_t &last);
/// The tick that is_time() compares. One of the kernel's, which costs some loads.
inline std::uint64_t tick()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

/// SO_COOKIE, 0: it is none of ours any more.
std::uint64_t cookie_of(int fd);

/// Breaks the connection off: RST to the peer. Unread bytes are gone, and the next call says
/// ECONNRESET.
void disconnect(int fd);

/// What a close says to the peer, where another process may hold the socket for a moment longer:
/// FIN, or RST for one that closes hard or leaves bytes unread.
void end(int fd);

/// SO_LINGER with a time of 0: close breaks it off.
bool closes_hard(int fd);
void close_hard(int fd);

} // namespace ntb::socket::kernel

#endif
