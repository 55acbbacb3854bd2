// SPDX-License-Identifier: BSD-3-Clause
// What clients and daemons say to each other, and daemons of one machine among themselves: messages
// of one size over a SOCK_SEQPACKET socket, some with descriptors. doc/node-daemon.md says which
// message uses which field; what it does not use is 0. Each receiver bounds each field.
#ifndef NTBCLIENT_WIRE_MESSAGE_HPP
#define NTBCLIENT_WIRE_MESSAGE_HPP

#include <cstddef>
#include <cstdint>

namespace ntbc
{

inline constexpr uint32_t message_magic = 0x4442544E; // "NTBD"
inline constexpr uint16_t message_version = 7;
inline constexpr size_t key_bytes_max = 64;

enum class Type : uint16_t {
    // Of a client. Each but taken, close, unclaim, fin_seen and end_segment is answered, with the
    // request's number.
    hello = 1, ///< the first message
    listen,    ///< key, backlog, flags
    unlisten,  ///< id
    connect,   ///< key, flags, timeout_ms
    taken,     ///< id; a connection that was accepted does not count in its listener's backlog now
    close,     ///< id; of a connection in any state
    list,      ///< id: only connections with a higher one; backlog: so many entries at most
    revoke,    ///< id: ends a connection of the client's user; root and the daemon's user: any
    claim,     ///< other: the client's number, flags, timeout_ms; descriptor: a TCP socket
    unclaim,   ///< other: the client's number of a claim without an answer
    fin_seen,  ///< id, other: generation; the shadow of a claimed connection shows a FIN
    make_segment, ///< id: bytes
    end_segment,  ///< id; one that this client has made or opened
    grant,        ///< id, other: a segment of this client, flags: the other end may open it
    ungrant,      ///< id, other: a grant of this end
    open_segment, ///< id, other: a grant of the other end
    // Of the daemon to a client.
    answer = 32, ///< request, status, id; to a hello in id and other the numbers of this host
                 ///< and of the peer's, or 0; to make_segment and open_segment in other its bytes,
                 ///< and its descriptor
    entry,       ///< request, and a connection
    connected,   ///< id; descriptors: memory, bell
    failed,      ///< id, status
    accepted,    ///< id, other: the listener; descriptors: memory, bell
    ended,       ///< id, status: the connection was revoked, or its other host is lost
    claimed,     ///< id, other: the client's number; descriptors: memory, bell, record
    unclaimed,   ///< other: the client's number, status
    peer,        ///< id: the number of the peer host, 0: it is not joined any more
    // Between daemons of one machine.
    introduce = 64, ///< the first message, of the daemon that connects: key is the other's token
    introduced,     ///< the answer: key is the token of the one that connected
    offer,          ///< id at the connecting daemon, key, flags: somebody wants to connect
    withdraw,       ///< id of an offer
    matched,        ///< id of an offer, other: id at this daemon; descriptors: memory, bell. On
                    ///< two machines no descriptors: key is a token, ring_bytes of this host
    refused,        ///< id of an offer, status
    gone,           ///< id at the receiver, status: the end at the sender's host
    fin,            ///< id at the receiver, other: generation; as fin_seen
    find_segment,   ///< request, id at the receiver, other: a grant of that end
    segment_found,  ///< the answer: request, status, other: bytes; descriptor
};

/// Of listen and connect, with the matching of keys that both use.
inline constexpr uint32_t flag_local = 1; ///< both ends at this host; else at the two hosts
inline constexpr uint32_t flag_once = 2;  ///< listen: for one connection
inline constexpr uint32_t flag_wait = 4;  ///< connect: wait for a listener instead of being refused
inline constexpr uint32_t flag_accepted = 8; ///< claim: the socket was accepted, else connected

/// Of grant.
inline constexpr uint32_t flag_writable = 32;

/// Of Message::key_kind.
inline constexpr uint32_t key_name = 0;
inline constexpr uint32_t key_tuple = 1; ///< both addresses and ports of a TCP connection

/// Of an entry, with flag_local.
inline constexpr uint32_t flag_carried = 16; ///< its bytes go through the daemons

/// The first 12 bytes stay where they are in every version.
struct Message {
    uint32_t magic = message_magic;
    uint16_t version = message_version;
    Type type = Type::answer;
    uint32_t request = 0; ///< chosen by the client
    int32_t status = 0;   ///< 0 or a negative errno
    uint64_t id = 0;
    uint64_t other = 0;
    uint32_t flags = 0;
    uint32_t timeout_ms = 0;
    uint32_t backlog = 0;
    uint32_t ring_bytes = 0; ///< of each direction
    uint32_t end = 0;        ///< which end the receiver is: 0 connected, 1 accepted
    uint32_t uid = 0;        ///< of the client at the other end; entry: of this host's
    uint32_t gid = 0;
    uint32_t pid = 0;
    uint32_t state = 0; ///< of an entry
    uint32_t key_kind = 0;
    uint32_t key_bytes = 0;
    uint32_t directions = 0;  ///< of an entry that was claimed: states of sender and receiver
    uint64_t sent = 0;        ///< of an entry: bytes from this end
    uint64_t received = 0;    ///< of an entry: bytes that this end has taken
    uint64_t sent_by_tcp = 0; ///< of an entry that was claimed: beside those by rings
    uint64_t received_by_tcp = 0;
    uint8_t key[key_bytes_max] = {};
};
static_assert(sizeof(Message) == 176);

/// Most entries before the answer to a list.
inline constexpr uint32_t list_batch = 32;
inline constexpr int fds_max = 3;
/// What a foreign sender may add to a message at most (SCM_MAX_FD). There is room for all: what the
/// kernel has no room for it closes within the call that receives, and a close may wait.
inline constexpr int fds_received_max = 253;
/// Segments are of so many bytes at most, and of whole pages of so many.
inline constexpr uint64_t segment_bytes_max = uint64_t{256} << 20;
inline constexpr uint64_t segment_page_bytes = 4096;
inline bool is_segment_size(uint64_t bytes)
{
    return bytes != 0 && bytes <= segment_bytes_max && bytes % segment_page_bytes == 0;
}

/// A message and what came with it; its descriptors are closed with it unless they are taken.
class Parcel
{
public:
    Parcel() = default;
    ~Parcel();
    Parcel(const Parcel &) = delete;
    Parcel &operator=(const Parcel &) = delete;

    void clear();
    /// Hands a descriptor over to the caller; -1 if there is none.
    int take_fd(int index);
    int fd(int index) const { return index < count ? fds[index] : -1; }

    Message message;
    int fds[fds_received_max]; ///< count of them
    int count = 0;             ///< of a message that is right, fds_max at most
};

/// Never blocks. Descriptors stay the caller's.
/// @return 0; -EAGAIN if the other end does not take it now; another negative errno
int message_send(int socket, const Message &message, const int *fds = nullptr, int count = 0);

/// Whether bytes that came otherwise are a message of this version, by the checks that do not
/// depend on its type.
bool message_of(const void *bytes, size_t count, Message *out);

enum class Received {
    message,
    nothing,   ///< none there now
    closed,    ///< the other end is gone
    malformed, ///< not what this version sends
    starved,   ///< a descriptor came along, and this process may have no more of them
    foreign,   ///< of another version, in the parcel's message, or no message at all
};
/// Never blocks. A message has passed the checks that do not depend on its type: sizes, version,
/// length of the key.
Received message_receive(int socket, Parcel *out);

} // namespace ntbc

#endif
