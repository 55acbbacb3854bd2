// SPDX-License-Identifier: BSD-3-Clause
#include "network/network.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "engine/look.hpp"
#include "locked.hpp"
#include "port/client.hpp"
#include "quiet_thread.hpp"
#include "short_turns.hpp"

namespace ntb::verbs
{
namespace
{

constexpr std::uint64_t introduction_magic = 0x6f6c6c656862746e; // "ntbhello"
constexpr std::uint32_t introduction_version = 4;
// For the connection of a peer that has refused ours, and for an answer before there is an engine.
constexpr std::uint64_t patience = 5 * second;
// Of a peer that is there, whose own connection does not come: it speaks otherwise than we do.
constexpr int max_refusals = 4;
// Connections of unknown peers that have not said who they are.
constexpr std::ptrdiff_t max_asked = 256;
// Above it would be the number of multicast datagrams; 0 has the special queue pairs.
constexpr std::uint32_t last_node = node_mask - 1;
constexpr int drives_between_looks = 64;
// Who does something else than to poll and post does it for longer.
constexpr std::uint64_t between_calls = 2000;
constexpr std::uint32_t loopback_bytes = 1 << 16;

struct Name {
    char text[32];
    explicit Name(Address of)
    {
        snprintf(text, sizeof(text), "verbs/%u/%u", lid_of(of), node_of(of));
    }
};

// @return 1 it has come whole, 0 not yet, -1 it never will
int hear(ntbclient_conn *conn, Introduction &introduction)
{
    const ssize_t got = ntbclient_recv(conn, &introduction, sizeof(introduction), NTBCLIENT_PEEK);
    if (got == -EAGAIN || (got > 0 && got < static_cast<ssize_t>(sizeof(introduction))))
        return 0;
    if (got <= 0)
        return -1;
    ntbclient_recv(conn, nullptr, sizeof(introduction), 0);
    return introduction.magic == introduction_magic && introduction.version == introduction_version
               ? 1
               : -1;
}

} // namespace

Network::Network(ntbv_clock clock, void *context)
    : clock_(clock), context_(context), spinning_(process_spinning())
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, [] { pthread_atfork(nullptr, nullptr, forget_spinners_after_fork); });
    // Programs that wait for their completions poll, and give the CPU away now and then only.
    spinning_.answers_here = false;
}

Network::~Network()
{
    stop();
    if (bell_ >= 0)
        ::close(bell_);
    pthread_mutex_destroy(&wishes_mutex_);
}

int Network::open(const char *socket)
{
    bell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bell_ < 0)
        return -errno;
    const int attached = ntbclient_attach(socket, &client_);
    if (attached != 0)
        return attached;
    segments_.begin(client_);
    return draw();
}

// The host's LID is the daemon's; a node's number is drawn and listened to; then both hosts have
// been asked whether somebody else has it. Of two that draw the same at a time at least one sees
// the other.
int Network::draw()
{
    const std::uint16_t lid = ntbclient_host(client_);
    for (int tries = 0; tries < 100; ++tries) {
        std::uint16_t drawn;
        if (getrandom(&drawn, sizeof(drawn), 0) != static_cast<ssize_t>(sizeof(drawn)))
            return -EIO;
        own_ = make_address(lid, 1 + drawn % last_node);
        const Name name(own_);
        int error = 0;
        for (int local = 0; local < 2 && error == 0; ++local) {
            const ntbclient_options options = options_of(local != 0);
            error = ntbclient_listen(client_, name.text, &options, &listeners_[local]);
        }
        if (error == 0 && !is_taken_at_peer(name.text))
            return 0;
        for (ntbclient_listener *&listener : listeners_) {
            ntbclient_listener_close(listener);
            listener = nullptr;
        }
        if (error != 0 && error != -EADDRINUSE)
            return error;
    }
    return -EADDRINUSE;
}

bool Network::is_taken_at_peer(const char *name)
{
    const ntbclient_options options = options_of(false);
    ntbclient_conn *conn = nullptr;
    if (ntbclient_connect(client_, name, &options, &conn) != 0)
        return false;
    ntbclient_wait(conn, NTBCLIENT_WRITABLE, static_cast<int>(patience / 1000000));
    const bool taken = info_of(conn).state == NTBCLIENT_OPEN;
    ntbclient_close(conn);
    return taken;
}

int Network::start(Engine &engine)
{
    engine_ = &engine;
    {
        const Visit visit(engine.lock());
        engine.set_service(this);
    }
    const int error = start_quiet_thread<&Network::run>(thread_, "ntb-verbs", *this);
    runs_ = error == 0;
    return error;
}

void Network::stop()
{
    if (runs_) {
        stop_ = true;
        wake();
        pthread_join(thread_, nullptr);
        runs_ = false;
        const Visit visit(engine_->lock());
        engine_->set_service(nullptr);
        engine_->leave_ports();
    }
    for (Pending &pending : pending_)
        ntbclient_close(pending.conn);
    pending_.clear();
    ports_.clear();
    for (ntbclient_listener *&listener : listeners_) {
        ntbclient_listener_close(listener);
        listener = nullptr;
    }
    segments_.end();
    ntbclient_detach(client_);
    client_ = nullptr;
}

// Each wish is a link that is sought, so there are not more.
void Network::seek(Address peer)
{
    {
        const Locked locked(wishes_mutex_);
        if (n_wishes_ < NTBV_MAX_LINKS)
            wishes_[n_wishes_++] = peer;
    }
    wake();
}

void Network::wake()
{
    const std::uint64_t one = 1;
    // A full counter is readable, which is all that a bell has to be.
    [[maybe_unused]] const ssize_t written = write(bell_, &one, sizeof(one));
}

// ---- the thread

void Network::run()
{
    ask_for_short_turns();
    prctl(PR_SET_TIMERSLACK, 1000); // of timers of queue pairs, the shortest of which has 10 us
    while (!stop_) {
        if (!lost_ && ntbclient_process(client_) != 0)
            lost_ = true;
        tell_parting();
        take_wishes();
        accept();
        for (auto at = pending_.begin(); at != pending_.end();)
            at = advance(*at) ? std::next(at) : pending_.erase(at);
        int done = 1;
        for (int i = 0; i < drives_between_looks && done != 0; ++i) {
            const Visit visit(engine_->lock());
            done = engine_->drive();
        }
        const bool has_answers = carry_out_orders();
        sweep();
        if (done == 0 && !has_answers)
            wait();
    }
}

// What the program sees is that its peers are gone, as if they had ended. It may see that before
// the daemon has said why.
void Network::tell_parting()
{
    const bool is_joined = ntbclient_peer_host(client_) != 0;
    const bool has_parted = std::exchange(was_joined_, is_joined) && !is_joined;
    if (lost_ && std::exchange(has_met_, false)) // no peer is met any more
        fprintf(stderr, "ntbverbs: the node daemon is gone: all peers are lost\n");
    else if (!lost_ && has_parted && has_met_far_)
        fprintf(stderr, "ntbverbs: the node daemon has lost that of the peer host: the peers at "
                        "that host are lost\n");
}

void Network::take_wishes()
{
    Address wishes[NTBV_MAX_LINKS];
    std::uint32_t n = 0;
    {
        const Locked locked(wishes_mutex_);
        n = n_wishes_;
        std::copy_n(wishes_, n, wishes);
        n_wishes_ = 0;
    }
    for (std::uint32_t i = 0; i < n; ++i)
        ask(wishes[i]);
}

void Network::ask(Address peer)
{
    {
        const Visit visit(engine_->lock());
        if (!engine_->seeks(peer)) // it has come by itself
            return;
    }
    if (peer == own_)
        return join_itself();
    // Of an older wish, whose answer is this one's as well.
    for (const Pending &pending : pending_)
        if (pending.peer == peer && pending.stage != Stage::Asked)
            return;
    pending_.push_back({.stage = Stage::Connecting, .local = true, .peer = peer});
    connect(pending_.back());
}

void Network::connect(Pending &pending)
{
    const ntbclient_options options = options_of(pending.local);
    const int error = ntbclient_connect(client_, Name(pending.peer).text, &options, &pending.conn);
    if (error == 0)
        return;
    pending.conn = nullptr;
    tell_refusal(error);
}

void Network::accept()
{
    for (ntbclient_listener *listener : listeners_) {
        ntbclient_conn *conn = nullptr;
        while (ntbclient_accept(listener, &conn) == 0) {
            make_room();
            pending_.push_back({.stage = Stage::Asked, .conn = conn});
        }
    }
}

// Who has connected and says nothing may be without a CPU: it has time until others need its place.
void Network::make_room()
{
    const auto is_asked = [](const Pending &one) { return one.stage == Stage::Asked; };
    if (std::count_if(pending_.begin(), pending_.end(), is_asked) < max_asked)
        return;
    const auto oldest = std::find_if(pending_.begin(), pending_.end(), is_asked);
    ntbclient_close(oldest->conn);
    pending_.erase(oldest);
}

// No clock ends what waits for the daemon or for a peer: both say so when they are gone.
bool Network::advance(Pending &pending)
{
    bool goes_on = pending.stage != Stage::Met && !lost_;
    if (goes_on && pending.stage == Stage::Connecting)
        goes_on = advance_connecting(pending);
    if (goes_on && pending.stage == Stage::Asking)
        goes_on = advance_asking(pending);
    else if (goes_on && pending.stage == Stage::Asked)
        goes_on = advance_asked(pending);
    else if (goes_on && pending.stage == Stage::Waiting)
        goes_on = advance_waiting(pending);
    if (!goes_on)
        give_up(pending);
    return goes_on;
}

// At the end of a request, whatever became of it: what is not adopted is closed.
void Network::give_up(Pending &pending)
{
    ntbclient_close(pending.conn);
    if (pending.stage == Stage::Asked)
        return;
    const Visit visit(engine_->lock());
    engine_->unreachable(pending.peer); // unless it has a link
}

bool Network::advance_connecting(Pending &pending)
{
    const ntbclient_info info = pending.conn ? info_of(pending.conn) : ntbclient_info{};
    if (pending.conn && info.state == NTBCLIENT_CONNECTING)
        return true;
    if (pending.conn && info.state == NTBCLIENT_OPEN) {
        pending.stage = Stage::Asking;
        return introduce(pending);
    }
    tell_refusal(info.error);
    if (!pending.local)
        return false;
    // Not at this host.
    ntbclient_close(pending.conn);
    pending.local = false;
    connect(pending);
    return pending.conn != nullptr;
}

bool Network::introduce(Pending &pending)
{
    const Introduction own = {introduction_magic, introduction_version, own_, pending.peer, {}};
    return ntbclient_send(pending.conn, &own, sizeof(own), 0) == static_cast<ssize_t>(sizeof(own));
}

bool Network::advance_asking(Pending &pending)
{
    Introduction peer;
    const int heard = hear(pending.conn, peer);
    if (heard == 0)
        return true;
    if (heard > 0) {
        if (peer.from == pending.peer && peer.to == own_)
            adopt(pending);
        return false;
    }
    ntbclient_close(pending.conn);
    pending.conn = nullptr;
    pending.stage = Stage::Waiting;
    pending.until = now() + patience;
    return ++pending.refusals < max_refusals;
}

// A peer that is gone refuses the next connection at once.
bool Network::advance_waiting(Pending &pending)
{
    if (now() < pending.until)
        return true;
    pending.stage = Stage::Connecting;
    pending.local = true;
    connect(pending);
    return true;
}

// Of two that connect to each other at a time, the connection of the one with the lower address
// stays. Nothing but introductions has gone over the other one.
bool Network::advance_asked(Pending &pending)
{
    Introduction peer;
    const int heard = hear(pending.conn, peer);
    if (heard <= 0)
        return heard == 0;
    if (peer.to != own_ || peer.from == own_ || !is_address(peer.from))
        return false;
    pending.peer = peer.from;
    const auto own = std::find_if(pending_.begin(), pending_.end(), [&](const Pending &other) {
        return other.peer == peer.from && other.stage != Stage::Asked;
    });
    if (own != pending_.end() && own->stage != Stage::Waiting && own_ < peer.from)
        return false;
    if (introduce(pending) && adopt(pending) && own != pending_.end())
        own->stage = Stage::Met;
    return false;
}

// @retval false there is a link to that peer, or no room for one
bool Network::adopt(Pending &pending)
{
    std::unique_ptr<Connection> port = Connection::create(pending.conn);
    if (!port) {
        if (errno == EMSGSIZE)
            fprintf(stderr,
                    "ntbverbs: the daemon's rings have %u bytes, and verbs need %u: 'ring' in its "
                    "configuration\n",
                    info_of(pending.conn).ring_bytes, Connection::least_ring);
        return false;
    }
    pending.conn = nullptr;
    const Visit visit(engine_->lock());
    if (engine_->attach(*port, pending.peer) != 0)
        return false;
    has_met_ = true;
    has_met_far_ = has_met_far_ || lid_of(pending.peer) != lid_of(own_);
    ports_.push_back(std::move(port));
    return true;
}

void Network::join_itself()
{
    if (!itself_)
        itself_ = Loopback::create(loopback_bytes);
    const Visit visit(engine_->lock());
    if (!itself_ || engine_->attach(itself_->end(0), own_) != 0 ||
        engine_->attach(itself_->end(1), own_) != 0)
        engine_->unreachable(own_);
}

bool Network::take_order(Connection *&port, Connection::Order &order)
{
    const Visit visit(engine_->lock());
    for (const auto &one : ports_) {
        port = one.get();
        if (one->take(order))
            return true;
    }
    return false;
}

// The daemon, and for some that of the peer host, is waited for without the engine's lock. Ports
// go by this thread alone.
bool Network::carry_out_orders()
{
    bool any = false;
    Connection *port = nullptr;
    for (Connection::Order order; take_order(port, order); order = {}) {
        any = true;
        bool writable = order.writable;
        const std::uint64_t number =
            order.segment ? segments_.grant(port->conn(), *order.segment, writable) : order.number;
        std::shared_ptr<Segment> opened;
        if (!order.segment)
            opened = segments_.open(port->conn(), number, writable);
        const Visit visit(engine_->lock());
        if (order.segment)
            engine_->granted(*port, *order.segment, writable, number);
        else
            engine_->opened(*port, number, std::move(opened), writable);
    }
    segments_.destroy_gone();
    return any;
}

// What the engine has closed it does not use any more.
void Network::sweep()
{
    const auto first = [this] {
        const Visit visit(engine_->lock());
        return std::partition(ports_.begin(), ports_.end(),
                              [](const auto &port) { return !port->is_closed(); });
    }();
    ports_.erase(first, ports_.end());
}

// Who connects sleeps at once: that takes as long as processes take.
void Network::wait()
{
    const bool has_peers = itself_ || !ports_.empty();
    const auto may_look = [this] {
        const Visit visit(engine_->lock());
        return engine_->begin_look();
    };
    if (!pending_.empty() || !has_peers || !may_look())
        return sleep();
    Spin spin(spinning_, spin_time_);
    if (look(*engine_, spinning_, spin, [this] { return is_called(); }))
        return;
    spin.stop();
    sleep();
}

// Otherwise than by the bells of the ports.
bool Network::is_called() const
{
    pollfd fds[] = {{bell_, POLLIN, 0}, {lost_ ? -1 : ntbclient_fd(client_), POLLIN, 0}};
    return ::poll(fds, 2, 0) != 0;
}

void Network::sleep()
{
    fds_.clear();
    fds_.push_back({bell_, POLLIN, 0});
    if (!lost_)
        fds_.push_back({ntbclient_fd(client_), POLLIN, 0});
    std::uint64_t longest = UINT64_MAX;
    bool ready = false;
    for (const Pending &pending : pending_) {
        if (pending.stage == Stage::Waiting)
            longest = std::min(longest, pending.until - std::min(now(), pending.until));
        ready = pending.stage == Stage::Met || ready;
        if (pending.stage == Stage::Asking || pending.stage == Stage::Asked) {
            ready = ntbclient_arm(pending.conn, NTBCLIENT_READABLE) != 0 || ready;
            fds_.push_back({ntbclient_conn_fd(pending.conn), POLLIN, 0});
        }
    }
    Engine::Rest rest = Engine::Rest::None;
    std::uint64_t calls = UINT64_MAX;
    if (!ready) {
        std::uint64_t nanoseconds;
        const Visit visit(engine_->lock());
        rest = engine_->rest(nanoseconds);
        engine_->may_be_away(calls);
        longest = std::min(longest, nanoseconds);
    }
    if (rest == Engine::Rest::Asleep) {
        for (const auto &port : ports_)
            fds_.push_back({port->bell(), POLLIN, 0});
        for (int end = 0; itself_ && end < 2; ++end)
            fds_.push_back({itself_->end(end).bell(), POLLIN, 0});
    }
    if (rest != Engine::Rest::None) {
        const timespec timeout = {static_cast<time_t>(longest / second),
                                  static_cast<long>(longest % second)};
        ppoll(fds_.data(), fds_.size(), longest == UINT64_MAX ? nullptr : &timeout, nullptr);
        const auto may_be_away = [&] {
            const Visit visit(engine_->lock());
            engine_->rise();
            return engine_->may_be_away(calls);
        };
        if (may_be_away() && rest == Engine::Rest::Nap) {
            const std::uint64_t until = monotonic() + between_calls;
            while (monotonic() < until) {
            }
            may_be_away();
        }
    }
    for (const Pending &pending : pending_)
        if (pending.stage == Stage::Asking || pending.stage == Stage::Asked)
            ntbclient_disarm(pending.conn, NTBCLIENT_READABLE);
    std::uint64_t count;
    [[maybe_unused]] const ssize_t taken = read(bell_, &count, sizeof(count));
}

} // namespace ntb::verbs
