// SPDX-License-Identifier: BSD-3-Clause
// A client, its listeners and connections.
#ifndef NTBCLIENT_CLIENT_CLIENT_HPP
#define NTBCLIENT_CLIENT_CLIENT_HPP

#include "ntbclient.h"
#include "ring/receiver.hpp"
#include "ring/sender.hpp"
#include "wire/message.hpp"

#include <atomic>
#include <pthread.h>
#include <sys/types.h>

namespace ntbc
{

/// What an end of a connection knows. It lies in memory that a forked child shares.
struct End {
    Sender sender;     // of the thread that sends
    Receiver receiver; // of the thread that receives
    std::atomic<uint32_t> state{NTBCLIENT_CONNECTING};
    std::atomic<int> error{0};
    std::atomic<bool> discards{false}; ///< reset at this end: nothing is received any more
    std::atomic<bool> bell_closed{false};
    std::atomic<uint32_t> armed{0};
    std::atomic<uint32_t> spin_ns{20000}; ///< how long ntbclient_wait() polls before it sleeps
    std::atomic<uint64_t> rings{0};
    std::atomic<uint64_t> sleeps{0};
    pthread_mutex_t bell_lock; ///< robust, shared between processes: taking bytes from the bell
};

inline constexpr int answer_timeout_ms = 5000;

} // namespace ntbc

struct ntbclient_conn {
    ntbclient *client = nullptr;
    ntbclient_conn *next = nullptr;         ///< of the client's connections, or of those that wait
    ntbclient_listener *listener = nullptr; ///< waits to be accepted there
    uint64_t id = 0;
    ntbc::End *end = nullptr;
    // Set before the state becomes open.
    ntbc::Page *page = nullptr;
    int bell = -1;
    uint32_t ring_bytes = 0;
    uint32_t index = 0; ///< which end this is: what it produces into
    uint32_t peer_uid = 0;
    uint32_t peer_gid = 0;
};

struct ntbclient_listener {
    ntbclient *client = nullptr;
    ntbclient_listener *next = nullptr;
    uint64_t id = 0;
};

struct ntbclient_segment {
    ntbclient *client = nullptr;
    ntbclient_segment *next = nullptr;
    uint64_t id = 0;
    uint64_t bytes = 0;
    void *data = nullptr;
    int fd = -1;
    bool is_own = false; ///< made by this client, else opened
    bool writable = false;
};

struct ntbclient {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; ///< of all below, and of the socket
    int socket = -1;
    int news = -1; ///< an eventfd: something was taken in that ntbclient_process() has not seen
    int fd = -1;   ///< an epoll instance of both
    pid_t pid = 0;
    uint16_t host = 0;                  ///< as the daemon says
    std::atomic<uint16_t> peer_host{0}; ///< likewise
    uint32_t requests = 0;
    std::atomic<bool> gone{false};
    bool timed_out = false; ///< gone, for want of an answer
    ntbclient_conn *conns = nullptr;
    ntbclient_listener *listeners = nullptr;
    ntbclient_segment *segments = nullptr;
};

namespace ntbc
{

// ---- events.cpp, with the client locked

/// Sends a request and waits for its answer; what else arrives meanwhile is taken in.
/// @param entry gets each entry before the answer; NULL: there are none
/// @param fd gets the descriptor that came with the answer, the caller's then; NULL: it is closed
/// @return the answer's status, or -ECONNRESET: the daemon is gone
int ask(ntbclient *client, Message *request, Message *answer,
        void (*entry)(void *, const Message &) = nullptr, void *context = nullptr,
        int *fd = nullptr);
/// ask() of a caller that does not hold the lock, and has nothing else to do under it.
int ask_alone(ntbclient *client, Message *request, Message *answer);
/// The number of the peer host; what cannot be one ends the attachment.
void take_peer_host(ntbclient *client, uint64_t number);
/// Sends what is not answered.
void post(ntbclient *client, const Message &message);
/// Takes in all that is there.
/// @param listener what comes for it is not counted; NULL: all is
/// @return how much came
uint32_t take_in(ntbclient *client, const ntbclient_listener *listener = nullptr);
/// Something was taken in for whom it may concern, who may be about to sleep: ntbclient_fd() is
/// readable until ntbclient_process() was called.
void leave_news(ntbclient *client);
/// The daemon is gone, or does not keep to the protocol: all ends.
void give_up(ntbclient *client);

// ---- connection.cpp

/// @return a connection in state connecting, not yet in a list; NULL: no memory
ntbclient_conn *conn_create(ntbclient *client);
/// Maps and opens what the daemon has sent. @return false: it is not what it should be
bool conn_open(ntbclient_conn *conn, Parcel *parcel);
/// Removes a connection from a list; it need not be there.
void unlink_conn(ntbclient_conn **list, const ntbclient_conn *conn);
/// Unmaps and frees. It is in no list any more.
void conn_destroy(ntbclient_conn *conn);
/// The first error stays.
void conn_fail(ntbclient_conn *conn, int error);
/// Publishes the end: orderly, or a reset if received bytes were not taken or @p reset.
void conn_finish(ntbclient_conn *conn, bool reset);
/// Shows the other end that this one is at its end, whatever other threads do in the connection.
void conn_abandon(ntbclient_conn *conn);
/// Makes the other end's bell readable. @param event that the other end waits for
void conn_ring(ntbclient_conn *conn, uint32_t event);
inline bool conn_is_open(const ntbclient_conn *conn)
{
    return conn->end->state.load(std::memory_order_acquire) != NTBCLIENT_CONNECTING &&
           conn->page != nullptr;
}
/// Of an open connection whose receiver has looked: whether receive_end() is 0, without looking
/// again.
inline bool conn_goes_on(const ntbclient_conn *conn)
{
    const End &end = *conn->end;
    return end.error.load(std::memory_order_relaxed) == 0 && !end.receiver.is_broken() &&
           end.receiver.end() == 0 && load(conn->page->gone) == 0 && !end.bell_closed.load();
}
/// Why nothing more is received, once nothing is readable: 1 orderly end, 0 not ended, or an errno.
int receive_end(ntbclient_conn *conn);
/// Why nothing can be sent: 0 or a negative errno.
int send_end(ntbclient_conn *conn);
/// Whether send_end() is 0, as far as nothing has ended at all.
inline bool conn_sends_on(const ntbclient_conn *conn)
{
    const End &end = *conn->end;
    return end.error.load(std::memory_order_relaxed) == 0 && !end.sender.has_ended() &&
           load(conn->page->gone) == 0 && !end.bell_closed.load(std::memory_order_relaxed) &&
           (load(conn->page->direction[1 - conn->index].published) & marks) == 0;
}

// ---- segment.cpp

/// Unmaps and frees all that the client has.
void segments_free(ntbclient *client);

// ---- request.cpp

/// Fills in a request with a name and options. @return 0, -EINVAL or -E2BIG
int name_request(const char *name, const ntbclient_options *options, Message *request);

} // namespace ntbc

#endif
