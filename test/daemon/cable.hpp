// SPDX-License-Identifier: BSD-3-Clause
// A bridge between two carriers of this process, without a device. A pipe takes few messages, so
// that both ends have to wait for each other.
#ifndef TEST_DAEMON_CABLE_HPP
#define TEST_DAEMON_CABLE_HPP

#include "carrier/carrier.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

namespace ntbd::test
{

class Cable
{
public:
    static constexpr size_t credit = 4;
    static constexpr size_t longest = 3000;

    struct Parcel {
        std::vector<uint8_t> bytes;
        uint32_t bits = 0; ///< not 0: a mark, with the count in bytes
    };
    struct Line {
        std::deque<Parcel> under_way[2]; ///< by who receives
        bool is_closed[2] = {false, false};
        bool is_reset = false;
        bool is_lost = false;
        bool waits[2] = {false, false}; ///< for room
        Relay *relay[2] = {nullptr, nullptr};
    };
    class End;

    /// Of the latest request for a pipe.
    Ticket last_ticket() const
    {
        const std::lock_guard held(lock_);
        return ticket_;
    }
    /// Whether the latest pipe takes no more messages to this end.
    bool is_full(unsigned end) const
    {
        const std::lock_guard held(lock_);
        return line_ != nullptr && line_->under_way[end].size() == credit;
    }
    /// What is done to each message of a pipe before it is on its way.
    void set_distort(std::function<void(Parcel *)> change)
    {
        const std::lock_guard held(lock_);
        distort_ = std::move(change);
    }

private:
    mutable std::mutex lock_;
    Ticket ticket_;
    std::shared_ptr<Line> line_;
    std::function<void(Parcel *)> distort_;
    friend class End;
};

class Cable::End : public Bridge
{
public:
    End(Cable &cable, unsigned index)
        : cable_(cable), index_(index), event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))
    {
    }
    ~End() override
    {
        const std::lock_guard held(cable_.lock_);
        if (other_ != nullptr)
            other_->other_ = nullptr;
        close(event_);
    }

    void plug(End *other) { other_ = other; }
    /// What the daemons have introduced themselves with.
    void begin(const Token &epoch)
    {
        const std::lock_guard held(cable_.lock_);
        epoch_ = epoch;
        told_.clear();
    }
    /// All pipes are lost; this end notices.
    void cut()
    {
        const std::lock_guard held(cable_.lock_);
        for (End *end : {this, other_})
            if (end != nullptr)
                end->lose_all();
    }
    /// As a peer's daemon that asks for a pipe with whatever ticket.
    std::shared_ptr<Line> ask(const Ticket &ticket)
    {
        const std::lock_guard held(cable_.lock_);
        return request(ticket, nullptr);
    }
    /// Whether the other carrier has refused or ended it.
    bool has_ended(const std::shared_ptr<Line> &line)
    {
        const std::lock_guard held(cable_.lock_);
        return line->is_reset || line->is_closed[1 - index_];
    }

    // ---- Bridge

    bool poll(Carrier &carrier) override
    {
        std::vector<Request> requests;
        std::vector<Note> notes;
        std::deque<ntbc::Message> told;
        bool is_lost;
        {
            const std::lock_guard held(cable_.lock_);
            requests.swap(requests_);
            notes.swap(notes_);
            told.swap(told_);
            is_lost = std::exchange(is_lost_, false);
            eventfd_t none;
            eventfd_read(event_, &none);
        }
        for (const Request &one : requests)
            answer(carrier, one);
        for (const Note &one : notes)
            if (Relay *const relay = relay_of(*one.line); relay != nullptr)
                carrier.ready(relay, one.events);
        for (const ntbc::Message &one : told) {
            LinkNews news = {LinkNews::Kind::message};
            news.message = one;
            carrier.say(news);
        }
        if (is_lost) {
            carrier.lose();
            carrier.say({LinkNews::Kind::lost});
        }
        return !requests.empty() || !notes.empty() || !told.empty() || is_lost;
    }
    int event_fd() const override { return event_; }
    bool arm() override { return true; } // its events are readable until they are taken
    void disarm() override {}
    std::unique_ptr<Pipe> connect(const Ticket &ticket, Relay *relay) override
    {
        const std::lock_guard held(cable_.lock_);
        if (!epoch_)
            return nullptr;
        return std::make_unique<Channel>(*this, request(ticket, relay));
    }
    Sent send(const Token &epoch, const ntbc::Message &message) override
    {
        const std::lock_guard held(cable_.lock_);
        if (epoch_ != epoch)
            return Sent::stale;
        other_->told_.push_back(message);
        other_->wake();
        return Sent::sent;
    }
    void drop_peer(const Token &epoch) override
    {
        bool is_now;
        {
            const std::lock_guard held(cable_.lock_);
            is_now = epoch_ == epoch;
        }
        if (is_now)
            cut();
    }

private:
    struct Request {
        std::shared_ptr<Line> line;
        Ticket ticket;
    };
    struct Note {
        std::shared_ptr<Line> line;
        uint32_t events;
    };

    class Channel : public Pipe
    {
    public:
        Channel(End &end, std::shared_ptr<Line> line) : end_(end), line_(std::move(line)) {}
        ~Channel() override
        {
            const std::lock_guard held(end_.cable_.lock_);
            line_->is_closed[own()] = true;
            line_->relay[own()] = nullptr;
            end_.note_other(line_, readable);
        }
        size_t longest() const override { return Cable::longest; }
        ssize_t send(const ntbc::Receiver &ring, size_t bytes) override
        {
            Parcel parcel;
            parcel.bytes.resize(bytes);
            ring.copy(parcel.bytes.data(), 0, bytes);
            return put(std::move(parcel), static_cast<int>(bytes));
        }
        int send(const Mark &mark) override
        {
            Parcel parcel = {std::vector<uint8_t>(sizeof(mark.count)), mark.bits};
            memcpy(parcel.bytes.data(), &mark.count, sizeof(mark.count));
            return put(std::move(parcel), 1);
        }
        Got receive(ntbc::Sender *ring, size_t most) override
        {
            Parcel parcel;
            if (const Got none = take(&parcel); none.kind != Got::Kind::bytes)
                return none;
            Got got = {Got::Kind::bytes, parcel.bytes.size()};
            if (parcel.bits != 0) {
                if (parcel.bytes.size() != sizeof(got.mark.count))
                    return {Got::Kind::wrong};
                got.kind = Got::Kind::mark;
                got.mark.bits = parcel.bits;
                memcpy(&got.mark.count, parcel.bytes.data(), sizeof(got.mark.count));
            } else if (parcel.bytes.empty() || parcel.bytes.size() > most) {
                return {Got::Kind::wrong};
            } else if (ring != nullptr) {
                ring->put(parcel.bytes.data(), parcel.bytes.size());
            }
            return got;
        }
        ssize_t send(const LineWords &words, const ntb::socket::Ring &ring, uint64_t position,
                     size_t bytes) override
        {
            Parcel parcel;
            bytes = std::min(bytes, Cable::longest - sizeof(words));
            parcel.bytes.resize(sizeof(words) + bytes);
            memcpy(parcel.bytes.data(), &words, sizeof(words));
            ring.copy_out(parcel.bytes.data() + sizeof(words), position, bytes);
            const size_t sent = parcel.bytes.size();
            return put(std::move(parcel), static_cast<int>(sent));
        }
        Got receive(LineWords *words) override
        {
            if (const Got none = take(&held_); none.kind != Got::Kind::bytes)
                return none;
            if (held_.bits != 0 || held_.bytes.size() < sizeof(*words))
                return {Got::Kind::wrong};
            memcpy(words, held_.bytes.data(), sizeof(*words));
            return {Got::Kind::words, held_.bytes.size() - sizeof(*words)};
        }
        void copy(size_t from, const ntb::socket::Ring &ring, uint64_t position,
                  size_t bytes) override
        {
            ring.copy_in(position, held_.bytes.data() + sizeof(LineWords) + from, bytes);
        }
        void reset() override
        {
            const std::lock_guard held(end_.cable_.lock_);
            line_->is_reset = true;
            end_.note_other(line_, readable);
        }

    private:
        unsigned own() const { return end_.index_; }
        /// @return bytes: there is one
        Got take(Parcel *parcel)
        {
            const std::lock_guard held(end_.cable_.lock_);
            std::deque<Parcel> &queue = line_->under_way[own()];
            if (line_->is_reset)
                return {Got::Kind::ended};
            if (queue.empty())
                return {line_->is_closed[1 - own()] || line_->is_lost ? Got::Kind::ended
                                                                      : Got::Kind::nothing};
            *parcel = std::move(queue.front());
            queue.pop_front();
            if (line_->waits[1 - own()]) {
                line_->waits[1 - own()] = false;
                end_.note_other(line_, writable);
            }
            return {Got::Kind::bytes};
        }
        int put(Parcel parcel, int result)
        {
            const std::lock_guard held(end_.cable_.lock_);
            if (line_->is_reset || line_->is_lost)
                return -ECONNRESET;
            std::deque<Parcel> &queue = line_->under_way[1 - own()];
            if (queue.size() >= credit) {
                line_->waits[own()] = true;
                return 0;
            }
            if (end_.cable_.distort_)
                end_.cable_.distort_(&parcel);
            queue.push_back(std::move(parcel));
            end_.note_other(line_, readable);
            return result;
        }

        End &end_;
        std::shared_ptr<Line> line_;
        Parcel held_;
    };

    // With the lock.
    void wake() { eventfd_write(event_, 1); }
    void note(const std::shared_ptr<Line> &line, uint32_t events)
    {
        notes_.push_back({line, events});
        wake();
    }
    void note_other(const std::shared_ptr<Line> &line, uint32_t events)
    {
        if (other_ != nullptr)
            other_->note(line, events);
    }
    void lose_all()
    {
        epoch_.reset();
        is_lost_ = true;
        wake();
        for (const auto &line : lines_) {
            line->is_lost = true;
            for (End *end : {this, other_})
                if (end != nullptr)
                    end->note(line, Pipe::readable);
        }
    }
    std::shared_ptr<Line> request(const Ticket &ticket, Relay *relay)
    {
        lines_.remove_if([](const auto &one) { return one->is_closed[0] && one->is_closed[1]; });
        auto line = std::make_shared<Line>();
        cable_.ticket_ = ticket;
        cable_.line_ = line;
        line->relay[index_] = relay;
        lines_.push_back(line);
        other_->requests_.push_back({line, ticket});
        other_->wake();
        return line;
    }
    Relay *relay_of(const Line &line)
    {
        const std::lock_guard held(cable_.lock_);
        return line.relay[index_];
    }
    void answer(Carrier &carrier, const Request &one)
    {
        Relay *const relay = carrier.admit(&one.ticket, sizeof(one.ticket));
        {
            const std::lock_guard held(cable_.lock_);
            one.line->relay[index_] = relay;
            one.line->is_reset = relay == nullptr;
            note_other(one.line, Pipe::readable | Pipe::writable);
        }
        if (relay != nullptr)
            carrier.join(relay, std::make_unique<Channel>(*this, one.line), one.ticket.ring_bytes);
    }

    Cable &cable_;
    const unsigned index_;
    const int event_;
    End *other_ = nullptr;
    std::optional<Token> epoch_;
    bool is_lost_ = false;
    std::list<std::shared_ptr<Line>> lines_;
    std::vector<Request> requests_;
    std::vector<Note> notes_;
    std::deque<ntbc::Message> told_;
};

} // namespace ntbd::test

#endif
