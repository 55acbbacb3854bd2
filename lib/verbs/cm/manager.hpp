// SPDX-License-Identifier: BSD-3-Clause
// The connection manager of a process: doc/verbs.md, section 12. It has no thread and no lock: its
// owner makes one call at a time.
#ifndef NTB_VERBS_CM_MANAGER_HPP
#define NTB_VERBS_CM_MANAGER_HPP

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <rdma/rdma_user_cm.h>

#include "cm/command.hpp"
#include "cm/surroundings.hpp"

namespace ntb::verbs::cm
{

enum class State : std::uint8_t {
    Idle,
    Bound,
    Listening,
    Resolved,
    Routing,
    Routed,
    Connecting,
    Replied,
    Requested,
    Accepted,
    Connected,
    Disconnecting,
    Over,
};

/// Numbers of librdmacm.
enum class Event : std::uint32_t {
    AddrResolved = 0,
    RouteResolved = 2,
    RouteError = 3,
    ConnectRequest = 4,
    ConnectResponse = 5,
    Unreachable = 7,
    Rejected = 8,
    Established = 9,
    Disconnected = 10,
};

/// What the other end of a connection has said of itself, or the route of its host.
struct Side {
    std::uint32_t qpn = 0;
    std::uint32_t psn = 0;
    std::uint16_t lid = 0;
    std::uint8_t gid[16] = {};
};

/// A connection's end as librdmacm knows it.
struct Id {
    std::uint32_t handle = 0;
    std::uint64_t uid = 0; ///< of its events; 0: it has none yet
    int channel = -1;
    std::uint16_t space = 0;
    std::uint8_t type = 0; ///< of its queue pair
    State state = State::Idle;
    bool is_passive = false;
    bool has_device = false;
    bool is_claimed = false; ///< the port of `source`
    bool is_v6_only = false;
    Address source = {}, destination = {};
    std::uint32_t reported = 0; ///< events
    std::uint32_t backlog = 0;  ///< requests that may still wait
    Link link = 0;
    std::uint32_t psn = 0; ///< that this end expects first
    Side peer;
    std::uint8_t responder_resources = 0, initiator_depth = 0;
    std::uint8_t retry_count = 7, rnr_retry_count = 7;
};

/// Attributes for the queue pair of an id in its present state.
/// @retval -EINVAL the id has no device, or it is too early for that queue pair state
int queue_pair_attributes(const Id &id, std::uint32_t qp_state, ib_uverbs_qp_attr &attr);

class Manager
{
public:
    static constexpr std::uint32_t max_ids = 65536; // librdmacm counts no further
    static constexpr std::uint32_t max_backlog = 1024;

    Manager(Carrier &carrier, Host &host) : carrier_(carrier), host_(host) {}
    ~Manager();
    Manager(const Manager &) = delete;
    Manager &operator=(const Manager &) = delete;

    /// A device that was opened, known by its descriptor.
    void open(int channel);
    /// Ends its ids.
    void close(int channel);
    bool is_open(int channel) const { return find_channel(channel) != nullptr; }
    /// Carries out a command.
    /// @param bytes  in the program's memory
    /// @return size, or a negative errno; -EAGAIN: no event waits
    ssize_t write(int channel, const void *bytes, std::size_t size);
    /// Events that wait.
    std::size_t waiting(int channel) const;
    /// Channels whose number of waiting events has changed since the last call.
    std::vector<int> take_changed();

    // What the carrier brings: messages that are sound, copied.

    /// The first message of an unknown peer. What is not taken is answered; the link is the
    /// manager's own from now on, unless it was closed.
    void request(Link link, Port port, const Message &message);
    void message(Link link, const Message &message);
    /// The answer to a question, whose link is no more.
    void located(Link link, std::uint16_t lid);
    /// The link is no more. @param error  negative errno
    void lost(Link link, int error);

private:
    struct Waiting {
        std::uint32_t id;    ///< whom it counts for
        std::uint32_t fresh; ///< the id that a request has brought; 0: none
        rdma_ucm_event_resp answer;
    };
    struct Channel {
        int descriptor;
        std::deque<Waiting> events;
        bool has_changed = false;
    };

    // Commands; each returns 0 or a negative errno.
    int create_id(Channel &channel, const Command &command);
    int destroy_id(Channel &channel, const Command &command);
    int bind_ip(Channel &channel, const Command &command);
    int resolve_ip(Channel &channel, const Command &command);
    int resolve_route(Channel &channel, const Command &command);
    int query_route(Channel &channel, const Command &command);
    int connect(Channel &channel, const Command &command);
    int listen(Channel &channel, const Command &command);
    int accept(Channel &channel, const Command &command);
    int reject(Channel &channel, const Command &command);
    int disconnect(Channel &channel, const Command &command);
    int init_qp_attr(Channel &channel, const Command &command);
    int get_event(Channel &channel, const Command &command);
    int set_option(Channel &channel, const Command &command);
    int notify(Channel &channel, const Command &command);
    int migrate_id(Channel &channel, const Command &command);
    int carry_out(Channel &channel, const Command &command);

    Channel *find_channel(int descriptor) const;
    Id *find(Channel &channel, std::uint32_t handle, int &error);
    Id *by_link(Link link);
    Id *by_port(Port port);
    Id *make_id(int channel, std::uint16_t space, std::uint8_t type);
    void end(Id &id);
    std::uint32_t drop_events(Channel &channel, std::uint32_t handle);

    void post(Id &id, Event event, std::int32_t status, const Message *message,
              Id *fresh = nullptr);
    int bind(Id &id, const Address &address);
    int claim(Id &id);
    void take_request(Id &id, const Message &message);
    int say_accepted(Id &id, const rdma_ucm_conn_param &param);
    Message introduce(Kind kind, const Id &id, const rdma_ucm_conn_param &param);
    void refuse(Link link, std::uint8_t type, std::uint32_t reason);
    bool send(Id &id, const Message &message);
    void close_link(Id &id);
    void unexpected(Id &id);
    void take_reply(Id &id, const Message &message);

    Carrier &carrier_;
    Host &host_;
    std::vector<std::unique_ptr<Channel>> channels_;
    std::vector<std::unique_ptr<Id>> ids_; // by handle less one
};

} // namespace ntb::verbs::cm

#endif
