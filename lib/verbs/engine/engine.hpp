// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_ENGINE_ENGINE_HPP
#define NTB_VERBS_ENGINE_ENGINE_HPP

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "completion/pipe.hpp"
#include "engine/lock.hpp"
#include "engine/service.hpp"
#include "engine/shared.hpp"
#include "memory/keys.hpp"
#include "memory/lazy.hpp"
#include "ntbv.h"
#include "port/port.hpp"
#include "queue/hook.hpp"
#include "queue/pair.hpp"
#include "wire/address.hpp"
#include "wire/message.hpp"

namespace ntb::verbs
{

/// A port as the engine sees it.
struct Link {
    /// To whom it has to be said that a queue pair is not there.
    struct Note {
        std::uint32_t to, from, seq;
        std::uint16_t attempt;
    };
    static constexpr std::uint32_t max_notes = 64;
    enum class State : std::uint8_t { Sought, Silent, Greeted, Up, Down };

    Port *port = nullptr;
    Address address = 0;
    State state = State::Silent; // Sought: without a port yet; Greeted: our Hello was sent
    bool heard = false;          // the peer's Hello has come
    bool owes_again = false;
    bool armed_for_room = false;
    bool has_words = false;       // the port brings those of both ends
    const Pair *worded = nullptr; // whose acknowledgement the own word is: not published yet
    std::uint32_t early = 0;      // datagrams that are kept for it
    std::uint32_t payload = 0;    // most bytes of one message
    std::uint32_t notes_head = 0, notes_tail = 0;
    Note notes[max_notes];
    std::uint64_t bit = 0; // in Engine::fresh_
    Hook<Pair> work;
};

/// A datagram whose peer is still sought. It is complete: what becomes of one is not reported.
struct Early {
    const Link *link; // NULL: free
    std::uint64_t turn;
    Header header;
    std::byte data[NTBV_UD_MTU];
};

/// Where the data of a message lie.
struct Places {
    iovec at[Port::max_parts];
    int n = 0;

    void add(const std::byte *data, std::uint32_t bytes)
    {
        at[n++] = {const_cast<std::byte *>(data), bytes};
    }
};

/// One device. Every function is called under lock(), but for those of set-up.
class Engine
{
public:
    /// @return 0 or a negative errno
    int create(Address own, ntbv_clock clock, void *context);
    ~Engine();

    Lock &lock() { return lock_; }
    Keys &keys() { return keys_; }
    Pipe &events() { return events_; }
    std::uint32_t users = 0; // objects
    std::uint32_t n_pds = 0, n_cqs = 0, n_srqs = 0;
    std::uint32_t next_pd = 1;

    /// @retval -EEXIST there is a link to that address @retval -ENOSPC too many
    /// @retval -EINVAL the address, or messages that are too short
    int attach(Port &port, Address peer);
    /// From now on peers without a link are sought.
    void set_service(Service *service) { service_ = service; }
    bool seeks(Address peer);
    /// No port is used any more. For the end, when there are no objects.
    void leave_ports();
    /// Who waits for that peer waits in vain.
    void unreachable(Address peer);
    int drive();
    enum class Rest : std::uint8_t {
        None,   ///< there is something to do
        Nap,    ///< the program polls: look again soon
        Asleep, ///< the bells are armed
    };
    /// The service is going to sleep until a bell rings, time has passed, or it is woken.
    /// @param nanoseconds  until drive() has something to do if no bell rings; UINT64_MAX: for ever
    Rest rest(std::uint64_t &nanoseconds);
    /// It has slept.
    void rise();
    /// Of a service that has nothing to do, before it looks for more. @retval false the program
    /// polls
    bool begin_look();
    /// Whether the program has polled often since the last look or rest began, and is not away.
    bool is_polled();
    /// Whether the program may have stopped to poll, and wait for what peers do to its memory. To
    /// be asked twice, with the same number, and with some time between.
    bool may_be_away(std::uint64_t &calls);
    /// The program polls an empty queue. Whether all that can be found to do comes by a word that a
    /// port has. That a peer is gone has no word: one of many polls goes the whole way.
    bool is_settled() const { return is_calm_ && !answerer_ && polls_ % polls_of_a_drive != 0; }
    /// The same, if that has to be found out.
    bool can_settle()
    {
        return polls_ % polls_of_a_drive != 0 && !answerer_ && (is_calm_ || settle());
    }
    /// Of one that is settled: whether it has one peer, which most have. find_changed() is shorter
    /// then.
    bool has_one_peer() const { return n_watched_ == 1; }
    Link *find_one_changed()
    {
        ++polls_;
        return changed_at(0);
    }
    /// @return the link that alone has something to do; NULL: none has
    Link *find_changed()
    {
        ++polls_;
        // Behind the one that was served last: one peer that is busy is no reason to wait for
        // another.
        for (std::uint32_t left = n_watched_, at = last_watched_; left != 0; --left) {
            at = at + 1 < n_watched_ ? at + 1 : 0;
            if (Link *const link = changed_at(at)) {
                last_watched_ = at;
                return link;
            }
        }
        return nullptr;
    }
    struct Polled {
        int done;
        const Pair *of; ///< the queue pair of all completions, or NULL
    };
    /// For a program, which gets what is complete, of a link that find_changed() has found: whose
    /// port watches a mark, and of any.
    Polled poll_marked(Link &link);
    Polled poll_counted(Link &link);
    /// The same of one link, or of all.
    int drive_for_poll(Link *link);
    /// The whole way.
    int poll_all()
    {
        ++polls_;
        return drive_for_poll(nullptr);
    }
    /// It has polled an empty queue, and so much was done.
    /// @return whether there was nothing to do for many times
    bool count_poll(int done)
    {
        idle_polls_ = done != 0 ? 0 : idle_polls_ + 1;
        return idle_polls_ % polls_of_a_turn == polls_of_a_turn - 1;
    }
    /// It polls or posts.
    void begin_call()
    {
        ++calls_;
        is_content_ = false;
    }
    /// It has taken completions, of which this is the last; or the last is of that queue pair.
    void end_poll(const ntbv_wc &last)
    {
        const Pair *pair = find(last.qpn);
        is_content_ = pair && pair->send.done == pair->send.head;
    }
    void end_poll(const Pair &pair) { is_content_ = pair.send.done == pair.send.head; }
    /// It has asked for an event of a completion.
    void expect_event();
    /// The program returns from a call: what it leaves behind is the service's.
    void hand_over()
    {
        publish();
        if (rest_ == Rest::Asleep && !is_calm_)
            rouse_if_needed();
    }
    std::uint64_t now() const { return clock_(context_); }
    void say(std::uint64_t cookie, ntbv_event event);

    // ---- direct.cpp
    /// From now on regions are shared with peers that map them, and those of peers are used, of
    /// queue pairs that are made from now on. Called without the lock, once, before there are any.
    /// @param segments  has to live as long as there are regions
    /// @param lends     peers may also take the data of long SENDs from where they lie
    /// @return 0; -EOPNOTSUPP the kernel has no userfaultfd for this user; -ENOMEM
    int be_direct(Segments &segments, bool lends);
    bool is_direct() const { return segments_ != nullptr; }
    /// What a region can be shared by.
    struct Offer {
        ntbv_count reason = NTBV_COUNT_SHARED; ///< or why it cannot
        std::shared_ptr<Segment> segment;
    };
    /// For a region that is about to be made. Called without the lock: it may wait for who makes
    /// segments.
    Offer prepare(const void *memory, std::uint64_t length, unsigned access);
    /// Of a new region, and of one that is about to go.
    void share(std::uint32_t key, Offer &&offer);
    void unshare(std::uint32_t key);
    /// What a port has said that comes later. @param number  0: refused
    void granted(const Port &port, const Segment &segment, bool writable, std::uint64_t number);
    /// @param segment  NULL: refused
    void opened(const Port &port, std::uint64_t number, std::shared_ptr<Segment> segment,
                bool writable);
    /// In the child of a fork(): each region is its own.
    void keep_in_child();
    std::uint64_t count(ntbv_count which) const { return counts_[which]; }
    Hook<Engine> direct_engines{this}; // of this process

    // ---- posting.cpp
    int post_send(Pair &pair, const ntbv_send_wr *wr, const ntbv_send_wr **bad)
    {
        if (wr && !wr->next && post_lone(pair, *wr)) [[likely]]
            return 0;
        return post_others(pair, wr, bad);
    }
    int post_send_all(Pair &pair, const ntbv_send_wr *wr);

    // ---- pairs.cpp
    /// @retval -ENOSPC no number is free
    int enter(Pair &pair);
    void leave(Pair &pair);
    int modify(Pair &pair, const ntbv_qp_attr &attr, unsigned mask);
    int post_recv(Pair &pair, const ntbv_recv_wr *wr, const ntbv_recv_wr **bad)
    {
        int error = 0;
        for (; wr; wr = wr->next) {
            error =
                pair.srq || pair.attr.state == NTBV_RESET ? -EINVAL : pair.receive.queue.post(*wr);
            if (error != 0) {
                *bad = wr;
                break;
            }
        }
        if (pair.attr.state == NTBV_ERR || pair.receive.starves) [[unlikely]]
            use_posted(pair);
        return error;
    }
    /// Whether a receive that is posted has nothing to do but to be kept.
    static bool only_keeps(const Pair &pair)
    {
        return !pair.srq && !pair.receive.starves && pair.attr.state != NTBV_RESET &&
               pair.attr.state != NTBV_ERR;
    }
    int post_srq(ntbv_srq &srq, const ntbv_recv_wr *wr, const ntbv_recv_wr **bad);

private:
    enum class Turn { Done, More, Full };
    enum class Way { Message, Direct, Waits };
    struct Part;
    static constexpr std::uint32_t max_opened = 64;
    // Own requests are to find places for what they ask for, however much is lent.
    static constexpr std::uint32_t max_opened_lent = max_opened / 2;
    static constexpr std::uint32_t max_pairs = NTBV_MAX_QP;
    static_assert(max_pairs == 1U << slot_bits);
    static constexpr std::uint32_t polls_of_a_turn = 128;
    static constexpr std::uint32_t polls_of_a_drive = 256;
    static constexpr std::uint32_t watchful_rests = 16;
    static constexpr std::uint32_t max_early = 64;
    static constexpr std::uint8_t answers_of_a_habit = 16;
    static constexpr std::uint32_t most_of_a_lone_send = 256;

    // ---- engine.cpp
    Pair *find(std::uint32_t number)
    {
        Pair *pair = pairs_[number & (max_pairs - 1)];
        return pair && pair->number == number ? pair : nullptr;
    }
    // Something is to be done that no word of a port says.
    void stir() { is_calm_ = false; }
    bool settle();
    Link *changed_at(std::uint32_t at) const
    {
        const Watched &watched = watched_[at];
        if (watched.watch->is_quiet())
            return nullptr;
        // The lines of the message are asked for at once, not behind all that takes it.
        __builtin_prefetch(watched.watch->next);
        __builtin_prefetch(watched.watch->next + 64);
        return watched.link;
    }
    void add_work(Link &link, Pair &pair)
    {
        stir();
        link.work.append(pair.work);
    }
    Link *link_to(Address peer);
    Link *find_or_seek(Address peer);
    Link *free_link(Address peer);
    int drive(Link &link);
    Polled take_one(Link &link, const Port::Incoming &message);
    int take_for_poll(Link &link, const Port::Incoming &message);
    int go_on(Link &link, bool more);
    bool take(Link &link, const Port::Incoming &message);
    int send_work(Link &link);
    static bool has_port(const Link &link)
    {
        return link.state != Link::State::Down && link.state != Link::State::Sought;
    }
    // After drive() has found nothing to do, its port is full.
    static bool sends(const Link &link)
    {
        return link.state == Link::State::Silent ||
               (link.state == Link::State::Up &&
                (!link.work.empty() || link.early != 0 || link.owes_again ||
                 link.notes_head != link.notes_tail));
    }
    bool is_unattended() const;
    std::uint64_t deadline() const;
    bool arm();
    void disarm();
    void rouse();
    void rouse_if_needed();
    void handle(Link &link, const Header &header, const std::byte *payload);
    void lose(Link &link);
    void take_word(Link &link);
    bool greet(Link &link);
    bool send_notes(Link &link);
    bool send_early(Link &link);
    void drop_early(Link &link);
    void note(Link &link, const Header &header);
    void run_timers();
    void wait(Pair &pair, std::uint64_t nanoseconds, bool for_receive);
    void wake(Pair &pair);
    // A link that is lost serves no request, and who waits there is not started by a post.
    void has_work(Pair &pair)
    {
        if (pair.link && pair.link->state != Link::State::Down)
            add_work(*pair.link, pair);
    }
    /// What goes in the next message of data of which so many bytes are left.
    static std::uint32_t bytes_of_piece(const Link &link, std::uint32_t left)
    {
        const std::uint32_t bytes = std::min(left, link.payload);
        constexpr auto header = static_cast<std::uint32_t>(sizeof(Header));
        return bytes <= Port::undivided ? bytes : link.port->suitable(header + bytes) - header;
    }
    /// Of what was reserved, and parts behind it. The peer sees it when the burst ends.
    void commit(Link &link, std::uint32_t bytes, const Places &places)
    {
        link.port->commit(bytes, places.at, places.n);
        fresh_ |= link.bit;
    }
    void commit(Link &link, std::uint32_t bytes)
    {
        link.port->commit(bytes);
        fresh_ |= link.bit;
    }
    void publish()
    {
        if (fresh_ == 0) [[likely]]
            return;
        do {
            Link &link = links_[std::countr_zero(fresh_)];
            fresh_ &= ~link.bit;
            link.port->publish();
            shown(link);
        } while (fresh_ != 0);
    }
    void shown(Link &link)
    {
        if (link.address == own_) [[unlikely]]
            stir(); // settle() relies on it
        if (link.worded && !link.worded->receive.owes_ack) [[likely]]
            take_back_word(link);
    }
    // What it said has gone.
    static void take_back_word(Link &link)
    {
        link.port->leave(leaves_words);
        link.worded = nullptr;
    }
    /// A message of one header. @retval false the port is full
    bool send_plain(Link &link, const Header &header);

    // ---- pairs.cpp
    // Inline, so that a completion is built where it lies: who copies one that was just put
    // together waits until the stores of its fields are done.
    void push(Pair &pair, ntbv_cq &cq, const ntbv_wc &completion, bool solicited)
    {
        const bool was_overrun = cq.queue.overrun();
        if (!cq.queue.push(completion, solicited)) [[unlikely]]
            overrun(pair, cq, !was_overrun);
        if (cq.queue.owes_event()) [[unlikely]] {
            stir();
            owing_.append(cq.owing);
        }
    }
    void overrun(Pair &pair, const ntbv_cq &cq, bool is_new);
    void fail(Pair &pair, ntbv_event event);
    void to_error(Pair &pair);
    void flush_send(Pair &pair);
    void flush_receive(Pair &pair);
    void reset(Pair &pair);
    void abandon(Pair &pair);
    void use_posted(Pair &pair);
    void starved_is_ready(Pair &pair);

    // ---- direct.cpp
    ntbv_count find_reason(const std::byte *memory, std::uint64_t length, unsigned access) const;
    ntbv_count try_share(Region &region, Offer &&offer);
    void end_direct();
    void forget_direct(const Link &link);
    void forget_direct(Pair &pair);
    static void forget(Direct &direct);
    void note_question(Pair &pair, const Header &header);
    bool answer_question(Pair &pair);
    std::uint64_t find_grant(Link &link, Shared &shared, bool writable);
    void take_number(Shared::Given &given, bool writable, std::uint64_t number);
    static bool asks(Pair &pair, const Request &request);
    void take_grant(Link &link, Pair &pair, const Header &header, const std::byte *payload);
    bool send_grant(Pair &pair, Header header, const Grant &grant);
    bool begin_opening(Link &link, Pair &pair, Direct &direct, const Grant &grant,
                       std::uint32_t rights, bool is_lent);
    Opened *open(Link &link, std::uint64_t number);
    void finish(Pair &pair, Direct &direct);
    Opened *forget_revoked();
    static std::byte *find_direct(const Pair &pair, std::uint32_t opcode, std::uint32_t key,
                                  std::uint64_t address, std::uint32_t bytes);
    std::uint32_t find_parts(const Pair &pair, const ntbv_sge *sge, std::uint32_t n_sge,
                             std::uint32_t rights, Part *parts) const;
    bool transfer(Pair &pair, std::uint32_t opcode, std::uint32_t key, std::byte *there,
                  const Part *parts, std::uint32_t n);
    Way go_directly(Pair &pair, Request &request);
    bool post_directly(Pair &pair, const ntbv_send_wr &wr);

    // ---- lending.cpp
    enum class Lending { Message, Sent, Full };
    Lending lend(Pair &pair, Request &request);
    static Lent *find_lent(Pair &pair, std::uint32_t key);
    static Lent *place_to_lend(Pair &pair);
    bool say_lent(Pair &pair, std::uint32_t key);
    void end_lending(std::uint32_t key);
    bool may_open_lent(const Link &link, std::uint64_t number) const;
    void take_lend(Link &link, const Header &header, const std::byte *payload);
    bool say_mapped(Pair &pair);
    static void take_mapped(Pair &pair, const Header &header);
    void take_lent(Pair &pair, const Header &header);
    void lack(Pair &pair, const Header &header);
    void take_lacks(Pair &pair, const Header &header);

    // ---- posting.cpp
    Turn serve(Pair &pair);
    static bool is_alone(const Pair &pair, const Link &link);
    bool post_lone(Pair &pair, const ntbv_send_wr &wr);
    int post_others(Pair &pair, const ntbv_send_wr *wr, const ntbv_send_wr **bad);
    int enqueue(Pair &pair, const ntbv_send_wr &wr);
    int make_binding(ntbv_bind *bind, Binding &binding);
    void start_posted(Pair &pair);
    bool has_way(Pair &pair);

    // ---- requester.cpp
    Turn send_requests(Pair &pair, std::uint32_t &budget);
    bool execute_local(Pair &pair);
    static bool is_fenced(const Pair &pair, const Request &request);
    Turn send_piece(Pair &pair, Request &request);
    Turn send_datagram(Pair &pair, Request &request);
    bool transmit_datagram(Pair &pair, Request &request, Link &link);
    bool keep_datagram(Pair &pair, Request &request, Link &link);
    Turn send_read(Pair &pair, Request &request);
    // Of a message of `next`, which has its number from when something of it goes.
    static Header header_of(Pair &pair, Request &request, Kind kind, int flags)
    {
        auto &send = pair.send;
        if (send.next == send.high)
            request.seq = send.next_seq;
        return {.kind = kind,
                .flags = static_cast<std::uint8_t>(flags),
                .attempt = send.attempt,
                .to = pair.attr.dest_qpn,
                .from = pair.number,
                .seq = request.seq,
                .total = request.bytes,
                .key = request.key,
                .address = request.address};
    }
    // Something of `next` has gone, for the first time.
    static void first_sent(Pair &pair)
    {
        ++pair.send.high;
        ++pair.send.next_seq;
    }
    // The last message of `next` has gone.
    static void started(Pair &pair)
    {
        auto &send = pair.send;
        send.offset = 0;
        ++send.next;
        if (static_cast<std::int32_t>(send.next - send.high) > 0)
            send.high = send.next;
    }
    bool may_start(Pair &pair, Request &request);
    void halt(Pair &pair, Request &request, ntbv_status status);
    void fail_oldest(Pair &pair, ntbv_status status);
    void retire(Pair &pair);
    void retire_one(Pair &pair)
    {
        auto &send = pair.send;
        if (send.queue[send.done].is_read())
            --send.reads;
        send.received = 0;
        if (static_cast<std::int32_t>(send.done + 1 - send.next) > 0) {
            send.next = send.done + 1; // was to be sent again
            send.offset = 0;
        }
        retire_first(pair);
    }
    // The same of one that is no read, and not to be sent again.
    void retire_first(Pair &pair)
    {
        auto &send = pair.send;
        Request &request = send.queue[send.done];
        ++send.done;
        send.tries = send.rnr_tries = 0;
        if (pair.signal_all || (request.flags & NTBV_SIGNALED) != 0) [[likely]]
            push(pair, *pair.send_cq,
                 {.id = request.id,
                  .status = NTBV_SUCCESS,
                  .opcode = request.wc_opcode(),
                  .bytes = request.bytes,
                  .qpn = pair.number},
                 false);
    }
    // Whether it acknowledges the only request that is posted: nothing is behind it that its end
    // would be of use to. One that is sent again, or a read, is none.
    static bool ends_all(Pair &pair, std::uint32_t seq)
    {
        auto &send = pair.send;
        return seq + 1 == send.next_seq && send.done + 1 == send.high && send.high == send.head &&
               send.next == send.head && send.reads == 0 && pair.attr.state == NTBV_RTS;
    }
    bool accept_until(Pair &pair, std::uint32_t seq);
    static bool is_of_oldest(Pair &pair, std::uint32_t seq);
    static void go_back(Pair &pair);
    void take_ack(Pair &pair, std::uint32_t seq);
    void take_ack_of_some(Pair &pair, std::uint32_t seq);
    void take_nak(Pair &pair, const Header &header);
    void take_rnr(Pair &pair, const Header &header);
    void take_ready(Pair &pair);
    void take_data(Pair &pair, const Header &header, const std::byte *payload);
    void take_not_ready(Pair &pair, const Header &header);
    void take_again(Link &link);
    void miss(Pair &pair);
    bool gather(const Pair &pair, Request &request, std::uint32_t offset, std::uint32_t bytes,
                Places &places) const;
    bool readable(const Pair &pair, Request &request) const;

    // ---- responder.cpp
    Turn send_answers(Pair &pair, std::uint32_t &budget);
    Turn send_answer(Pair &pair, Answer &answer);
    Turn send_ack(Pair &pair);
    // An acknowledgement rides on a request, unless an answer has to go before it.
    void give_ride(Pair &pair, std::uint8_t &flags, std::uint32_t &ack)
    {
        const auto &receive = pair.receive;
        note_answer(pair);
        if (receive.owes_ack && receive.answers_head == receive.answers_tail &&
            !receive.owes_refusal())
            take_along(pair, flags, ack);
    }
    static void take_along(Pair &pair, std::uint8_t &flags, std::uint32_t &ack)
    {
        flags |= flag::ack;
        ack = pair.receive.expected - 1;
        pair.receive.owes_ack = false;
    }
    // A request goes, by which the program may have answered.
    void note_answer(Pair &pair)
    {
        if (answerer_ != &pair) [[unlikely]]
            return;
        answerer_ = nullptr;
        if (pair.receive.answered != answers_of_a_habit) [[unlikely]]
            ++pair.receive.answered;
    }
    void acknowledge(Pair &pair);
    void acknowledge_alone(Pair &pair);
    void end_turn();
    void end_turn_now();
    bool may_hold(const Pair &pair) const;
    void withdraw_word(const Pair &pair);
    bool holds_ack() const { return answerer_ && answerer_->receive.owes_ack; }
    void take_request(Link &link, const Header &header, const std::byte *payload);
    void take_connected(Pair &pair, const Header &header, const std::byte *payload);
    void take_datagram(Pair &pair, Link &link, const Header &header, const std::byte *payload);
    static bool receives(const Pair &pair)
    {
        return pair.attr.state == NTBV_RTR || pair.attr.state == NTBV_RTS ||
               pair.attr.state == NTBV_SQD || pair.attr.state == NTBV_SQE;
    }
    // Whether the queue pair is connected to that one of a link's peer.
    static bool is_peer(const Pair &pair, const Link &link, std::uint32_t number)
    {
        return pair.attr.dest_qpn == number && pair.link && pair.link->address == link.address;
    }
    bool begin(Pair &pair, const Header &header);
    bool next_receive(Pair &pair, Receive &receive);
    void take_piece(Pair &pair, const Header &header, const std::byte *payload);
    std::byte *place_of(const Pair &pair, const Receive *posted, std::uint32_t bytes);
    bool take_whole(Pair &pair, const Header &header, const std::byte *payload);
    bool take_lone(Link &link, const Port::Incoming &message, const Pair *&of);
    void deliver(Pair &pair, const Header &header, std::uint64_t id);
    void push_received(Pair &pair, std::uint64_t id, ntbv_wc_opcode opcode, std::uint32_t bytes,
                       unsigned flags, std::uint32_t value);
    void take_read(Pair &pair, const Header &header, const std::byte *payload);
    void end(Pair &pair, const Header &header);
    void refuse(Pair &pair, std::uint32_t code, ntbv_event event);
    void refuse_receive(Pair &pair, ntbv_status status, std::uint32_t code);
    bool scatter(const Pair &pair, const ntbv_sge *sge, std::uint32_t n_sge, std::uint32_t offset,
                 std::uint32_t bytes, const std::byte *from) const;

    Lock lock_;
    Address own_ = 0;
    ntbv_clock clock_ = nullptr;
    void *context_ = nullptr;
    Keys keys_;
    Pipe events_;
    Lazy<Pair *> pairs_;
    std::uint32_t next_slot_ = 1;
    std::uint64_t next_serial_ = 1;
    std::uint32_t n_links_ = 0;
    Link links_[NTBV_MAX_LINKS];
    bool losing_ = false; // datagrams to unknown peers are dropped instead of seeking
    Service *service_ = nullptr;
    Rest rest_ = Rest::None;
    std::uint64_t armed_until_ = 0; // while asleep
    std::uint64_t polls_ = 0;
    std::uint32_t idle_polls_ = 0;                       // in vain since something was done
    std::uint64_t polls_at_look_ = 0, polls_at_arm_ = 0; // as they were then
    std::uint64_t calls_ = 0;                            // polls and posts
    bool is_content_ = false;                            // the last one left nothing to poll for
    std::uint32_t watchful_rests_ = 0; // left of some since a peer has used memory here
    std::uint32_t pardons_ = 0;        // for polls, left of some since the program was away
    bool is_poll_ = false;             // the drive that is going on
    // Has taken one request in the last drive, a poll: it is the turn of the program, which may
    // answer. NULL: none, or it has.
    Pair *answerer_ = nullptr;
    Hook<Pair> waiting_;
    Hook<ntbv_cq> owing_;
    std::uint64_t fresh_ = 0; // links with messages that are not published
    static_assert(NTBV_MAX_LINKS <= 64);
    // The words of the ports, while nothing is to be done: no link greets or has work, none waits
    // for a time or a channel. Whatever changes that calls stir(): a poll that goes the whole way
    // would find what was forgotten, but a program that sleeps does not poll.
    struct Watched {
        const Port::Watch *watch; // the port's own, which goes on as messages are received
        Link *link;
    };
    bool is_calm_ = false;
    std::uint32_t n_watched_ = 0;
    std::uint32_t last_watched_ = 0; ///< was looked at last
    Watched watched_[NTBV_MAX_LINKS];
    Segments *segments_ = nullptr; // NULL: all data go by messages
    bool lends_ = false;
    Hook<Shared> shared_;
    Opened opened_[max_opened];
    std::atomic<std::uint32_t> barrier_{0};
    std::uint64_t counts_[NTBV_N_COUNTS] = {};
    Lazy<Early> early_;
    std::uint64_t early_turn_ = 0;
};

/// Calls `at(memory, bytes)` for each part of a range of the pieces, in order.
/// @retval false a part is not there, or lacks a right
template <typename At>
bool each_part(const Keys &keys, std::uint32_t pd, const ntbv_sge *sge, std::uint32_t n_sge,
               std::uint32_t offset, std::uint32_t bytes, std::uint32_t rights, At at)
{
    for (std::uint32_t i = 0; i < n_sge && bytes != 0; ++i) {
        const std::uint32_t length = sge[i].length;
        if (offset >= length) {
            offset -= length;
            continue;
        }
        const std::uint32_t part = length - offset < bytes ? length - offset : bytes;
        std::byte *memory = keys.find(sge[i].key, pd, sge[i].address + offset, part, rights);
        if (!memory)
            return false;
        at(memory, part);
        bytes -= part;
        offset = 0;
    }
    return bytes == 0;
}

/// Codes of a NAK are those of the requester's completion.
constexpr bool is_nak_code(std::uint32_t code)
{
    return code == NTBV_REM_INV_REQ_ERR || code == NTBV_REM_ACCESS_ERR || code == NTBV_REM_OP_ERR;
}

} // namespace ntb::verbs

struct ntbv_engine : ntb::verbs::Engine {
};

#endif
