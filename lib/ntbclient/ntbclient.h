/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NTBCLIENT_H
#define NTBCLIENT_H

/**
 * @file
 * ntbclient: connections between unprivileged processes, made by the node daemon ntbd.
 *
 * A client attaches to the daemon of its host over a local socket. The daemon joins two clients
 * that name the same key, one that listens and one that connects, and gives both the same memory
 * with a ring of bytes for each direction. The data go through the rings without the daemon, and
 * without a system call while both ends poll.
 *
 *     client       an attachment to the daemon of this host
 *      +- listener     a key that other clients may connect to
 *      +- connection   two rings of bytes, and a descriptor to sleep on
 *      +- segment      memory that the other end of a connection of this machine maps as well
 *
 * Threads: any thread may make the calls of a client, its listeners and connections, with these
 * exceptions. Of one connection, one thread at a time sends (send, sendv, place, placed, writable,
 * arm and disarm for NTBCLIENT_WRITABLE, shutdown), and one at a time receives (recv, recvv, view,
 * readable, monitor, arm and disarm for NTBCLIENT_READABLE); both may be at work at once. reset and
 * close exclude all other calls of the connection, detach all other calls of the client.
 * ntbclient_wait() counts as the calls of the events that it waits for.
 *
 * fork(), while no thread is in a call: the state of a connection lies in memory that parent and
 * child share. Both may use it as two threads of one process may. Who is done with it first calls
 * ntbclient_release(), the last one ntbclient_close(). The client itself (listen, accept, connect,
 * process, list, segments) stays with the parent.
 *
 * The peer is another program, maybe of another user: the other end of a connection can spoil its
 * own bytes and end the connection, and nothing else. Bytes that were received are a copy that it
 * cannot change any more.
 *
 * The daemon's death ends all connections of its clients, as each notices it: ntbclient_process(),
 * ntbclient_wait(). A client that only polls rings calls the former from time to time. After it,
 * detach and attach again.
 *
 * No call blocks but ntbclient_attach(), ntbclient_wait(), and for the answer of the daemon, for at
 * most five seconds, listen, connect, close, list and those of segments. A daemon that does not
 * answer is treated as dead.
 *
 * All calls are experimental: they may change or go without notice, so the compiler warns of each
 * use unless ALLOW_EXPERIMENTAL_API is defined, as for DPDK's.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(ALLOW_EXPERIMENTAL_API) || defined(__DOXYGEN__)
#define NTBCLIENT_EXPERIMENTAL
#else
#define NTBCLIENT_EXPERIMENTAL __attribute__((deprecated("Symbol is not yet part of stable ABI")))
#endif

/** Longest name in bytes. */
#define NTBCLIENT_MAX_NAME 64
/** Largest number of a host. */
#define NTBCLIENT_MAX_HOST 0xBFFF

struct ntbclient;
struct ntbclient_listener;
struct ntbclient_conn;
struct ntbclient_segment;

/** Options of a listener or of a connection. Initialise with ntbclient_options_init(). */
struct ntbclient_options {
    size_t size;         /**< sizeof(struct ntbclient_options) */
    uint32_t local;      /**< 1: the other client is at this host; 0: at the peer host */
    uint32_t backlog;    /**< Listener: connections that wait to be accepted, 1 to 1024; 0: 64 */
    uint32_t once;       /**< Listener: 1: one connection, then the listener is closed for others */
    uint32_t wait;       /**< Connection: 1: wait for a listener; 0: be refused if there is none */
    uint32_t timeout_ms; /**< Connection: longest wait for a listener and for the peer's daemon,
                              1 to 3600000 milliseconds; 0: 5000 */
};

/** State of a connection. */
enum ntbclient_state {
    NTBCLIENT_CONNECTING = 1, /**< There is no answer yet */
    NTBCLIENT_OPEN,           /**< Bytes flow, or have been sent and can be received */
    NTBCLIENT_ENDED,          /**< Failed, reset or revoked, see ntbclient_info::error */
};

/** Something can be received, or the end of it. */
#define NTBCLIENT_READABLE 1u
/** A quarter of the ring is free, or sending would fail. */
#define NTBCLIENT_WRITABLE 2u

/** Of ntbclient_recv(): leave the bytes where they are. */
#define NTBCLIENT_PEEK 1u
/** Of ntbclient_send(): more follows soon, so the other end need not see it yet. What was kept
 * back is shown with the next bytes sent without it, by an arm for NTBCLIENT_WRITABLE, a shutdown,
 * or a full ring. */
#define NTBCLIENT_MORE 2u

/** Information about a connection. */
struct ntbclient_info {
    size_t size;                /**< sizeof(struct ntbclient_info), set by the caller */
    uint64_t id;                /**< Of the connection, at the daemon of this host */
    enum ntbclient_state state; /**< State */
    int32_t error;              /**< Why it ended, a negative errno; 0: it has not */
    uint32_t ring_bytes;        /**< Of each direction, once it is open */
    uint32_t peer_uid;          /**< User of the other end, as the daemons say; once it is open */
    uint32_t peer_gid;          /**< Its group */
    uint32_t accepted;          /**< 1: made by accept, 0: by connect */
    uint64_t sent;              /**< Bytes sent */
    uint64_t received;          /**< Bytes received */
    uint64_t rings;             /**< System calls by which the other end was woken */
    uint64_t sleeps;            /**< Times that this end was armed */
};

/** State of a direction of a TCP connection that a client's sockets have shown to the daemon. */
enum ntbclient_direction {
    NTBCLIENT_BY_TCP = 0, /**< Its bytes go by TCP */
    NTBCLIENT_GRANTED,    /**< A ring is granted, and not used yet, or not seen to be */
    NTBCLIENT_BY_RING,    /**< Its bytes go by a ring */
    NTBCLIENT_AT_END,     /**< No byte follows */
    NTBCLIENT_BROKEN,     /**< Reset */
};

/** A connection in the list of a daemon. */
struct ntbclient_entry {
    size_t size;         /**< sizeof(struct ntbclient_entry), set by the caller */
    uint64_t id;         /**< Of the connection */
    uint32_t state;      /**< enum ntbclient_state; of an open one, as the daemon knows */
    uint32_t end;        /**< 0: the end that connected, 1: the end that accepted */
    uint32_t local;      /**< 1: both ends at this host */
    uint32_t uid;        /**< User of this end */
    uint32_t pid;        /**< Process of this end, as it attached */
    uint32_t ring_bytes; /**< Of each direction */
    uint64_t sent;       /**< Bytes sent by this end, as the client reports it */
    uint64_t received;   /**< Bytes received and returned by this end, as the client reports it */
    char name[NTBCLIENT_MAX_NAME + 1]; /**< The key */
    uint32_t carried;                  /**< 1: its bytes go through the daemons of two hosts */
    uint32_t claimed;     /**< 1: a TCP connection of a client's sockets: it has no name but what
                               follows, and sent and received are bytes by rings */
    uint32_t sending;     /**< enum ntbclient_direction, from this end, as the client reports it */
    uint32_t receiving;   /**< enum ntbclient_direction, to this end, as the client reports it */
    uint64_t sent_by_tcp; /**< Bytes not sent by rings, as the client reports it */
    uint64_t received_by_tcp; /**< Bytes not received by rings, as the client reports it */
    uint8_t address[2][16];   /**< Of the end that connected and the one that accepted; an IPv4
                                   address is mapped into IPv6 */
    uint16_t port[2];         /**< Their ports, in the byte order of this host */
    uint64_t segment_bytes;   /**< Of segments that this end has opened */
};

/**
 * Sets every option to its default, and size.
 *
 * @param options
 *   The options; NULL is ignored.
 */
static inline void ntbclient_options_init(struct ntbclient_options *options)
{
    if (options == NULL)
        return;
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
}

/* ------------------------------------------------------------------------------------------------
 * Clients
 */

/**
 * Attaches to the daemon of this host.
 *
 * @param path
 *   Of the daemon's socket, such as "/run/ntbmsg/ntb0.sock".
 * @param out
 *   The client, set on success only. Detach it with ntbclient_detach().
 * @retval 0
 *   Attached.
 * @retval -EINVAL
 *   An argument is NULL, or the path is too long for a socket.
 * @retval -ECONNREFUSED
 *   No daemon listens there.
 * @retval -EACCES
 *   The socket's mode or the daemon's configuration does not admit this user.
 * @retval -EPROTO
 *   What listens there is no ntbd, or one of another version.
 * @retval -EDQUOT
 *   The user has as many clients as the daemon admits.
 * @retval -ETIMEDOUT
 *   The daemon did not answer.
 * @retval -ENOMEM
 *   No memory.
 * @retval -ENOENT
 *   There is no such socket.
 * @retval -ECONNREFUSED
 *   No daemon listens there.
 * @retval -EACCES
 *   The socket's mode does not admit this user.
 * @retval -EMFILE
 *   The process has no descriptor left.
 * @retval -ENFILE
 *   The system has none left.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_attach(const char *path, struct ntbclient **out);

/**
 * Detaches a client: closes its listeners, resets connections that were not closed, and frees it.
 * Its handles are invalid after it.
 *
 * @param client
 *   A client; NULL is ignored.
 */
NTBCLIENT_EXPERIMENTAL
void ntbclient_detach(struct ntbclient *client);

/**
 * Returns a descriptor that is readable when ntbclient_process() has something to do: an answer to
 * a connect, a connection to accept, a connection that was revoked, another peer host, the end of
 * the daemon. Calls that ask the daemon (connect, listen, accept where none waits, list, revoke)
 * take in what comes before their answer; for that it stays readable until ntbclient_process() is
 * called. So a program that calls it whenever the descriptor is readable, and looks at its
 * connections and listeners after it, misses nothing.
 *
 * @param client
 *   A client.
 * @return
 *   The descriptor. It belongs to the library: never read, write or close it.
 * @retval -EINVAL
 *   client is NULL.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_fd(const struct ntbclient *client);

/**
 * A number of this host, for addresses in programs: the same for all clients of a daemon, and after
 * its restart. The peer host has another one, but by chance (1 of 49151) the same.
 *
 * @param client
 *   A client.
 * @return
 *   1 to NTBCLIENT_MAX_HOST; 0 if client is NULL.
 */
NTBCLIENT_EXPERIMENTAL
uint16_t ntbclient_host(const struct ntbclient *client);

/**
 * The number of the peer host, as its clients have it from ntbclient_host(), while the daemons of
 * both are joined. ntbclient_fd() becomes readable when it changes, and it changes with
 * ntbclient_process() and other calls that take in what the daemon has said.
 *
 * @param client
 *   A client.
 * @return
 *   1 to NTBCLIENT_MAX_HOST; 0 if they are not joined, the daemon is gone or client is NULL.
 */
NTBCLIENT_EXPERIMENTAL
uint16_t ntbclient_peer_host(const struct ntbclient *client);

/**
 * Takes in what the daemon has said: states of connections change, connections wait at listeners.
 *
 * @param client
 *   A client.
 * @retval 0
 *   All is taken in.
 * @retval -ECONNRESET
 *   The daemon is gone, now or before: all connections have ended.
 * @retval -EINVAL
 *   client is NULL.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_process(struct ntbclient *client);

/**
 * Lists connections of the daemon: those of the caller's user, or all of them for root and for the
 * daemon's own user.
 *
 * @param client
 *   A client.
 * @param after
 *   Only connections with a higher id; 0: from the first one.
 * @param entries
 *   Room for n; size is set in the first of them and is the distance between two.
 * @param n
 *   At most so many are listed, at most 32 in one call.
 * @return
 *   Entries filled in, in the order of their ids; 0: there are no more.
 * @retval -EINVAL
 *   An argument is NULL, n is 0, or size is invalid.
 * @retval -ECONNRESET
 *   The daemon is gone.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_list(struct ntbclient *client, uint64_t after, struct ntbclient_entry *entries,
                   uint32_t n);

/**
 * Revokes a connection, of this client or of another one: both ends see -ECONNRESET, and its memory
 * returns to the system. The caller is of the same user as one of its ends at this host, or root,
 * or the daemon's own user.
 *
 * @param client
 *   A client.
 * @param id
 *   Of the connection, as ntbclient_list() and ntbclient_info have it.
 * @retval 0
 *   Revoked.
 * @retval -ENOENT
 *   There is none, or it belongs to another user.
 * @retval -ECONNRESET
 *   The daemon is gone.
 * @retval -EINVAL
 *   client is NULL.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_revoke(struct ntbclient *client, uint64_t id);

/* ------------------------------------------------------------------------------------------------
 * Listeners
 */

/**
 * Opens a listener.
 *
 * @param client
 *   A client.
 * @param name
 *   1 to NTBCLIENT_MAX_NAME bytes. One that begins with "~UID/" can only be listened to by the user
 *   with that number; any other by who comes first.
 * @param options
 *   NULL for the defaults. Read before the call returns.
 * @param out
 *   The listener, set on success only. Close it with ntbclient_listener_close().
 * @retval 0
 *   Listening.
 * @retval -EINVAL
 *   An argument is NULL, or the name or an option is out of range.
 * @retval -E2BIG
 *   Options beyond those that the library knows are set.
 * @retval -EADDRINUSE
 *   Somebody listens to that name.
 * @retval -EACCES
 *   The name belongs to another user.
 * @retval -EDQUOT
 *   The user has as many listeners as the daemon admits.
 * @retval -ECONNRESET
 *   The daemon is gone.
 * @retval -ENOMEM
 *   No memory.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_listen(struct ntbclient *client, const char *name,
                     const struct ntbclient_options *options, struct ntbclient_listener **out);

/**
 * Closes a listener. Connections that were not accepted are reset.
 *
 * @param listener
 *   A listener; NULL is ignored.
 */
NTBCLIENT_EXPERIMENTAL
void ntbclient_listener_close(struct ntbclient_listener *listener);

/**
 * Takes the oldest connection that waits at a listener. Where there is none it takes in what the
 * daemon has said; see ntbclient_fd() for what was not meant for this listener.
 *
 * @param listener
 *   A listener.
 * @param out
 *   The connection, open, set on success only. Close it with ntbclient_close().
 * @retval 0
 *   Accepted.
 * @retval -EAGAIN
 *   None waits. ntbclient_fd() becomes readable when one does.
 * @retval -ECONNRESET
 *   None waits, and the daemon is gone.
 * @retval -EINVAL
 *   An argument is NULL.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_accept(struct ntbclient_listener *listener, struct ntbclient_conn **out);

/* ------------------------------------------------------------------------------------------------
 * Connections
 */

/**
 * Connects to a listener. Does not wait for it: the connection may still be in state
 * NTBCLIENT_CONNECTING, and ntbclient_fd() becomes readable when that changes.
 *
 * @param client
 *   A client.
 * @param name
 *   As of ntbclient_listen().
 * @param options
 *   NULL for the defaults. Read before the call returns.
 * @param out
 *   The connection, set on success only. Close it with ntbclient_close(), whatever becomes of it.
 * @retval 0
 *   Connecting, or open. Later errors are in ntbclient_info::error: -ECONNREFUSED there is no
 *   listener of that name, or its backlog is full, -ETIMEDOUT, -EHOSTUNREACH there is no peer, or
 *   no carrier to it, -ECONNRESET, -EDQUOT the listener's quota, -ENOMEM.
 * @retval -EINVAL
 *   An argument is NULL, or the name or an option is out of range.
 * @retval -E2BIG
 *   Options beyond those that the library knows are set.
 * @retval -EDQUOT
 *   The user has as many connections, or as much memory in them, as the daemon admits.
 * @retval -ECONNRESET
 *   The daemon is gone.
 * @retval -ENOMEM
 *   No memory.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_connect(struct ntbclient *client, const char *name,
                      const struct ntbclient_options *options, struct ntbclient_conn **out);

/**
 * Closes a connection, and frees it. What was sent still arrives. If bytes were received by the
 * ring and not by the caller, the other end sees a reset.
 *
 * @param conn
 *   A connection in any state; NULL is ignored.
 */
NTBCLIENT_EXPERIMENTAL
void ntbclient_close(struct ntbclient_conn *conn);

/**
 * Lets go of a connection in this process without ending it, for one that goes on in a parent or
 * child of it. It ends when the last process that has it closes it or has died.
 *
 * @param conn
 *   A connection in any state; NULL is ignored. The handle is invalid after it, in this process.
 */
NTBCLIENT_EXPERIMENTAL
void ntbclient_release(struct ntbclient_conn *conn);

/**
 * Ends a connection at once, at both ends: each further call returns -ECONNRESET. It is still to be
 * closed.
 *
 * @param conn
 *   A connection; NULL is ignored.
 */
NTBCLIENT_EXPERIMENTAL
void ntbclient_reset(struct ntbclient_conn *conn);

/**
 * Ends sending. The other end receives what was sent before, then the end of it.
 *
 * @param conn
 *   A connection.
 * @retval 0
 *   Shut down, now or before.
 * @retval -ENOTCONN
 *   It is not open yet.
 * @retval -ECONNRESET
 *   It has ended; or another error that ended it.
 * @retval -EINVAL
 *   conn is NULL.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_shutdown(struct ntbclient_conn *conn);

/**
 * Sends bytes: copies them into the ring, as many as there is room for.
 *
 * @param conn
 *   A connection.
 * @param data
 *   The bytes.
 * @param bytes
 *   Their number.
 * @param flags
 *   0 or NTBCLIENT_MORE.
 * @return
 *   Bytes accepted, 1 to bytes; 0 if bytes is 0.
 * @retval -EAGAIN
 *   There is no room.
 * @retval -ENOTCONN
 *   It is not open yet.
 * @retval -EPIPE
 *   Shut down at this end, or closed at the other one.
 * @retval -ECONNRESET
 *   Reset by either end, the other end has died or broken its ring, the connection was revoked, the
 *   peer host is lost, or the daemon is gone.
 * @retval -EINVAL
 *   A required argument is NULL, or flags is invalid.
 * @return
 *   Other negative errno values: why the connection failed.
 */
NTBCLIENT_EXPERIMENTAL
ssize_t ntbclient_send(struct ntbclient_conn *conn, const void *data, size_t bytes, uint32_t flags);

/**
 * As ntbclient_send(), from several places. The other end sees all of it at once.
 *
 * @param conn
 *   A connection.
 * @param parts
 *   The places.
 * @param n
 *   Their number, 0 to 1024.
 * @param flags
 *   0 or NTBCLIENT_MORE.
 * @retval -EINVAL
 *   n is out of range.
 * @return
 *   Else as ntbclient_send().
 */
NTBCLIENT_EXPERIMENTAL
ssize_t ntbclient_sendv(struct ntbclient_conn *conn, const struct iovec *parts, int n,
                        uint32_t flags);

/**
 * Shows where the bytes that are sent next will lie in the ring, so that they can be put together
 * there instead of being copied: as many as are known to have room, and follow each other in
 * memory. The place holds until something is sent otherwise. The other end may read and change what
 * is put there, but is to read nothing of it before ntbclient_placed().
 *
 * @param conn
 *   A connection.
 * @param bytes
 *   So many are wanted: the room is looked for anew if fewer are known to have it.
 * @param[out] data
 *   The place of the first byte; set only if there is one. It is mapped until the connection is
 *   closed.
 * @return
 *   The number of bytes, at least 1 and perhaps fewer than are wanted; else as ntbclient_send().
 */
NTBCLIENT_EXPERIMENTAL
ssize_t ntbclient_place(struct ntbclient_conn *conn, size_t bytes, void **data);

/**
 * Sends bytes that were put where ntbclient_place() said.
 *
 * @param conn
 *   A connection.
 * @param bytes
 *   Their number.
 * @param flags
 *   0 or NTBCLIENT_MORE.
 * @return
 *   bytes.
 * @retval -EINVAL
 *   They are more than ntbclient_place() shows, conn is NULL, or flags is invalid.
 * @return
 *   Else as ntbclient_send().
 */
NTBCLIENT_EXPERIMENTAL
ssize_t ntbclient_placed(struct ntbclient_conn *conn, size_t bytes, uint32_t flags);

/**
 * Receives bytes: copies them out of the ring, as many as there are.
 *
 * @param conn
 *   A connection.
 * @param data
 *   Room for them; NULL: they are dropped.
 * @param bytes
 *   At most so many.
 * @param flags
 *   0 or NTBCLIENT_PEEK.
 * @return
 *   Bytes received, 1 to bytes. 0: the other end has shut down and all was received, or bytes is 0.
 * @retval -EAGAIN
 *   There are none now.
 * @retval -ENOTCONN
 *   It is not open yet.
 * @retval -ECONNRESET
 *   As for ntbclient_send(). What arrived before is received first.
 * @retval -EINVAL
 *   conn is NULL, or flags is invalid.
 * @return
 *   Other negative errno values: why the connection failed.
 */
NTBCLIENT_EXPERIMENTAL
ssize_t ntbclient_recv(struct ntbclient_conn *conn, void *data, size_t bytes, uint32_t flags);

/**
 * Shows the bytes that are to be received next, where they lie in the ring: as many as are known to
 * have come and follow each other in memory. They stay there until they are received, as by
 * ntbclient_recv() with NULL for its data. The peer may change them until then: what is to be
 * checked is copied first.
 *
 * @param conn
 *   A connection. What is shown is mapped until it is closed.
 * @param[out] data
 *   The first byte; set only if there is one.
 * @retval -EINVAL
 *   An argument is NULL.
 * @return
 *   Their number, at least 1; else as ntbclient_recv().
 */
NTBCLIENT_EXPERIMENTAL
ssize_t ntbclient_view(struct ntbclient_conn *conn, const void **data);

/**
 * For who polls: a word of memory that does not have this value while bytes can be received, or
 * once the peer has ended the connection in order. That the peer or a daemon is gone does
 * not change it, so one of many looks has to be ntbclient_view() or ntbclient_recv().
 *
 * What it has more than the value, modulo 2^64, is the number of bytes that have come, if that is
 * at most the ring's (ntbclient_info); else ntbclient_view() says what has. They lie where that
 * shows them, and on to the ring's end, from which the value is as far away, modulo the ring's
 * bytes; there the ring goes on with its beginning. So who has viewed once finds all that follows
 * without a call. The word has to be loaded with acquire for that, and it may be anything that the
 * peer likes. What was found is to be received as what was viewed, before the peer wants for room.
 *
 * @param conn
 *   A connection. By the thread that receives.
 * @param[out] value
 *   What the word is as long as there is nothing to receive.
 * @return
 *   The word, which is mapped until the connection is closed, and has to be loaded atomically;
 * NULL: an argument is NULL, or the connection is not open yet.
 */
NTBCLIENT_EXPERIMENTAL
const uint64_t *ntbclient_monitor(struct ntbclient_conn *conn, uint64_t *value);

/**
 * Leaves a word for the peer, in place of the one before: it finds the word whenever it looks, also
 * once this process has ended or reset the connection, however that was. No sleep is ended. Where
 * the clients are joined through the daemons it does not get there.
 *
 * @param conn
 *   A connection. One thread at a time.
 * @param word
 *   Any number.
 * @retval 0
 *   Left.
 * @retval -EINVAL
 *   conn is NULL.
 * @retval -ENOTCONN
 *   The connection is not open yet.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_word_set(struct ntbclient_conn *conn, uint64_t word);

/**
 * For who leaves words all the time: what ntbclient_word_set() stores to.
 *
 * @param conn
 *   A connection.
 * @return
 *   The word, which is mapped until the connection is closed. It has to be stored to atomically,
 *   with release, so that what it stands for is seen before it, and by one thread at a time, which
 *   ntbclient_word_set() counts as. A store does what that call does: it ends no sleep, and is not
 *   seen through the daemons. NULL: conn is NULL or not open yet.
 */
NTBCLIENT_EXPERIMENTAL
uint64_t *ntbclient_word(struct ntbclient_conn *conn);

/**
 * The word that the peer has left, also of a connection that has ended.
 *
 * @param conn
 *   A connection. Any thread.
 * @return
 *   The word; 0: there is none, or conn is NULL or not open yet.
 */
NTBCLIENT_EXPERIMENTAL
uint64_t ntbclient_peer_word(struct ntbclient_conn *conn);

/**
 * As ntbclient_recv(), into several places.
 *
 * @param conn
 *   A connection.
 * @param parts
 *   The places.
 * @param n
 *   Their number, 0 to 1024.
 * @param flags
 *   0 or NTBCLIENT_PEEK.
 * @retval -EINVAL
 *   n is out of range.
 * @return
 *   Else as ntbclient_recv().
 */
NTBCLIENT_EXPERIMENTAL
ssize_t ntbclient_recvv(struct ntbclient_conn *conn, const struct iovec *parts, int n,
                        uint32_t flags);

/**
 * Returns how many bytes can be received now.
 *
 * @param conn
 *   A connection.
 * @return
 *   Bytes; 0 also if conn is NULL or not open.
 */
NTBCLIENT_EXPERIMENTAL
size_t ntbclient_readable(struct ntbclient_conn *conn);

/**
 * Returns how many bytes can be sent now.
 *
 * @param conn
 *   A connection.
 * @return
 *   Bytes; 0 also if conn is NULL or not open.
 */
NTBCLIENT_EXPERIMENTAL
size_t ntbclient_writable(struct ntbclient_conn *conn);

/**
 * Reads information about a connection. Figures that change meanwhile may not fit together.
 *
 * @param conn
 *   A connection.
 * @param info
 *   Filled in; the caller sets size.
 * @retval 0
 *   Filled in.
 * @retval -EINVAL
 *   An argument is NULL, or info->size is invalid.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_info_get(struct ntbclient_conn *conn, struct ntbclient_info *info);

/* ------------------------------------------------------------------------------------------------
 * Segments: memory of one client that another one maps, too, at the other end of a connection of
 * this machine. Who makes one grants it on such a connection, and sends the number to the
 * other end. What one writes the other one sees as memory of threads does; there is no other
 * order than that of its own loads and stores. Whoever may write can change it at any time: bound
 * what is read from it, and read it once.
 *
 * Any thread may make these calls; destroy excludes all other calls of the segment, and close those
 * of the connection. None blocks but for the answer of the daemon, as above.
 */

/** Largest segment in bytes. */
#define NTBCLIENT_MAX_SEGMENT (256u << 20)
/** Of ntbclient_segment_grant(): the other end may write, too. */
#define NTBCLIENT_SEGMENT_WRITABLE 1u

/** Information about a segment. */
struct ntbclient_segment_info {
    size_t size;    /**< sizeof(struct ntbclient_segment_info), set by the caller */
    void *data;     /**< Where it is mapped in this process */
    uint64_t bytes; /**< Its length; of one that was opened as the daemon says, not the peer */
    int32_t fd;     /**< To map it at other addresses. It belongs to the library: never close it */
    uint32_t writable; /**< 1: it can be written here; 0: stores raise SIGSEGV */
};

/**
 * Makes a segment of zeros, and maps it. Its size never changes: no access of either end raises
 * SIGBUS. It is charged to the user until it is destroyed or the client has gone.
 *
 * @param client
 *   A client.
 * @param bytes
 *   A multiple of 4096, up to NTBCLIENT_MAX_SEGMENT.
 * @param out
 *   The segment, set on success only. Destroy it with ntbclient_segment_destroy();
 *   ntbclient_detach() does it, too.
 * @retval 0
 *   Made.
 * @retval -EINVAL
 *   An argument is NULL, or bytes is out of range.
 * @retval -EDQUOT
 *   The user has as many segments, or as much memory, as the daemon admits.
 * @retval -ENOMEM
 *   No memory.
 * @retval -EMFILE
 *   This process or the daemon has no descriptors left.
 * @retval -EPROTO
 *   The daemon has sent something else.
 * @retval -ECONNRESET
 *   The daemon is gone.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_segment_create(struct ntbclient *client, uint64_t bytes,
                             struct ntbclient_segment **out);

/**
 * Unmaps a segment, and closes its descriptor. One that this client has made ends with it: its
 * grants, too, and its pages are taken away, so that an end that still maps it finds zeros.
 *
 * @param segment
 *   A segment that was made or opened; NULL is ignored.
 */
NTBCLIENT_EXPERIMENTAL
void ntbclient_segment_destroy(struct ntbclient_segment *segment);

/**
 * Reads information about a segment.
 *
 * @param segment
 *   A segment.
 * @param info
 *   Filled in; the caller sets size.
 * @retval 0
 *   Filled in.
 * @retval -EINVAL
 *   An argument is NULL, or info->size is invalid.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_segment_info_get(const struct ntbclient_segment *segment,
                               struct ntbclient_segment_info *info);

/**
 * Lets the other end of a connection open a segment: it alone, until the grant or the connection is
 * revoked, or either end is closed.
 *
 * @param conn
 *   A connection with both ends on this machine: at this host, or where the daemons of both hosts
 *   run here and join their clients directly.
 * @param segment
 *   One that the same client has made.
 * @param flags
 *   0: it can only be read; NTBCLIENT_SEGMENT_WRITABLE: also written. A client of the daemon's own
 *   user, or root, can make one writable that was granted to be read.
 * @param number
 *   Of the grant, on this connection; set on success only.
 * @retval 0
 *   Granted.
 * @retval -EINVAL
 *   An argument is NULL, flags is invalid, or the segment was opened, or made by another client.
 * @retval -EOPNOTSUPP
 *   The other end is on another machine, or its bytes go through the daemons.
 * @retval -ENOTCONN
 *   It is not open yet.
 * @retval -EDQUOT
 *   64 segments are granted on it.
 * @retval -ECONNRESET
 *   The connection has ended, or the daemon is gone.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_segment_grant(struct ntbclient_conn *conn, struct ntbclient_segment *segment,
                            uint32_t flags, uint64_t *number);

/**
 * Takes a grant back: nothing more is opened by it. What was opened stays mapped there, until the
 * segment is destroyed.
 *
 * @param conn
 *   The connection.
 * @param number
 *   As ntbclient_segment_grant() gave it.
 * @retval 0
 *   Revoked.
 * @retval -ENOENT
 *   There is no such grant of this end.
 * @retval -ECONNRESET
 *   The daemon is gone.
 * @retval -EINVAL
 *   conn is NULL.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_segment_revoke(struct ntbclient_conn *conn, uint64_t number);

/**
 * Opens and maps what the other end of a connection has granted. It is charged to this user, too,
 * until it is destroyed or this end is closed; it stays mapped until it is destroyed.
 *
 * @param conn
 *   A connection.
 * @param number
 *   Of the grant, as the other end has said: any value.
 * @param out
 *   The segment, set on success only. Destroy it with ntbclient_segment_destroy().
 * @retval 0
 *   Opened.
 * @retval -ETIMEDOUT
 *   The daemon of the peer host did not answer for two seconds.
 * @retval -ENOENT
 *   The other end has not granted that, or has revoked it.
 * @retval -EOPNOTSUPP
 *   The other end is on another machine, or its bytes go through the daemons.
 * @retval -ENOTCONN
 *   It is not open yet.
 * @retval -ECONNRESET
 *   The connection has ended, or the daemon is gone.
 * @retval -EINVAL
 *   An argument is NULL.
 * @retval -EDQUOT
 *   The user has as many segments or bytes as the daemon admits.
 * @retval -ENOMEM
 *   No memory.
 * @retval -EMFILE
 *   The process has no descriptor left.
 * @retval -EPROTO
 *   The daemon's answer is none that this version knows.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_segment_open(struct ntbclient_conn *conn, uint64_t number,
                           struct ntbclient_segment **out);

/* ------------------------------------------------------------------------------------------------
 * Sleeping
 */

/**
 * Returns the descriptor to sleep on, for poll() and epoll: readable after ntbclient_arm() when an
 * event has come, and when the other end is gone. A set of connections is slept on by all of their
 * descriptors, with ntbclient_fd().
 *
 * @param conn
 *   A connection.
 * @return
 *   The descriptor, until ntbclient_close(). It belongs to the library.
 * @retval -ENOTCONN
 *   It is not open yet, or failed before it was.
 * @retval -EINVAL
 *   conn is NULL.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_conn_fd(struct ntbclient_conn *conn);

/**
 * Asks the other end to make the descriptor readable once one of these events comes. An event that
 * stays armed costs nothing until it comes.
 *
 * @param conn
 *   A connection.
 * @param events
 *   NTBCLIENT_READABLE, NTBCLIENT_WRITABLE or both.
 * @return
 *   0: armed, sleep. Else the events that are there already: nothing is armed.
 * @retval -EINVAL
 *   conn is NULL, or events is invalid.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_arm(struct ntbclient_conn *conn, uint32_t events);

/**
 * Withdraws what was armed, after a sleep, and clears the descriptor.
 *
 * @param conn
 *   A connection; NULL is ignored.
 * @param events
 *   As of ntbclient_arm().
 */
NTBCLIENT_EXPERIMENTAL
void ntbclient_disarm(struct ntbclient_conn *conn, uint32_t events);

/**
 * Waits for a connection: polls its rings for a while, then sleeps. Waits for the answer where it
 * is connecting. Takes in what the daemon says.
 *
 * @param conn
 *   A connection.
 * @param events
 *   NTBCLIENT_READABLE, NTBCLIENT_WRITABLE or both.
 * @param timeout_ms
 *   Longest wait in milliseconds; 0: look only; negative: for ever.
 * @return
 *   The events that have come, 1 to 3. Those that will fail count as come.
 * @retval 0
 *   None in that time.
 * @retval -EINTR
 *   A signal handler interrupted the sleep.
 * @retval -EINVAL
 *   conn is NULL, or events is invalid.
 */
NTBCLIENT_EXPERIMENTAL
int ntbclient_wait(struct ntbclient_conn *conn, uint32_t events, int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
