// SPDX-License-Identifier: BSD-3-Clause
#include "session/session.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <sched.h>
#include <unistd.h>
#include <utility>

#include <rte_cycles.h>

#include "machine.hpp"
#include "measure/make_work.hpp"
#include "peer.hpp"
#include "transport/device.hpp"

namespace pktgen
{

namespace
{

// Messages that a client says it has sent are there within a moment, or never; a busy machine may
// take a core away for some of it.
constexpr uint64_t missing_ms = 4000;
// How long a client may leave control messages where they are.
constexpr uint64_t untaken_ms = 1000;
// What a client needs beyond the time that it asked for: to set up, to stop, to wait for answers.
constexpr uint64_t grace_ms = 60000;
constexpr uint64_t events_ms = 1;

uint64_t ms(uint64_t count)
{
    return rte_get_tsc_hz() / 1000 * count;
}

} // namespace

Session::Session(std::string device, ntbmsg_endpoint *endpoint, const Duty &duty)
    : device_(std::move(device)), endpoint_(endpoint), duty_(duty),
      queues_(static_cast<uint32_t>(duty.needs.queues)),
      control_(endpoint, Role::server, new_run()),
      channels_(endpoint, duty.listener != nullptr ? queues_ : 0, duty.needs.longest)
{
}

void Session::round(uint64_t now)
{
    if (lcores_ != nullptr) {
        lcores_->round(steps_);
        finish_when_done(now);
    }
    send_waiting(now);
    if (waiting_.empty()) // a peer that takes no answers gets no more of them
        receive(now);
    if (now < next_events_)
        return;
    next_events_ = now + ms(events_ms);
    look_at_events(now);
    if (duty_.listener != nullptr && lcores_ == nullptr) { // who measures drives them
        channels_.poll();
        channels_.accept(duty_.listener);
    }
}

/// Behind what waits already. It goes now, or in a later round.
void Session::send(ControlMessage message, uint64_t now)
{
    if (waiting_.empty())
        untaken_tsc_ = now + ms(untaken_ms);
    waiting_.push_back(std::move(message));
    send_waiting(now);
}

void Session::send_waiting(uint64_t now)
{
    while (!waiting_.empty()) {
        const int rc = control_.send(waiting_.front());
        if (rc == -EAGAIN && now > untaken_tsc_)
            return drop("it takes no messages");
        if (rc == -EAGAIN)
            return;
        if (rc != 0)
            return waiting_.clear(); // of a peer that has left an event reports
        waiting_.pop_front();
        untaken_tsc_ = now + ms(untaken_ms);
    }
}

/// What this peer asked for ends. It may begin anew, and so may its successor.
void Session::drop(const std::string &why)
{
    dropped_ = true;
    waiting_.clear();
    end_work();
    channels_.close();
    if (complained_)
        return; // a peer must not fill a log
    complained_ = true;
    std::fprintf(stderr, "ntbmsg-pktgen: %s: the session is dropped: %s\n", device_.c_str(),
                 why.c_str());
}

void Session::receive(uint64_t now)
{
    const auto message = control_.poll();
    if (message && message->role == Role::server)
        drop("the peer serves as well: one end has to drive, without --serve");
    else if (message && (!dropped_ || message->kind == Kind::hello))
        obey(*message, now);
    if (!control_.refusal().empty())
        drop(control_.refusal());
    control_.forget_refusal();
}

void Session::look_at_events(uint64_t now)
{
    ntbmsg_event event;
    while (ntbmsg_endpoint_event_poll(endpoint_, &event) == 1) {
        if (event == NTBMSG_EVENT_CONNECTED)
            greet(now);
        else if (event == NTBMSG_EVENT_LOST)
            peer_left();
        else if (event == NTBMSG_EVENT_REFUSED)
            std::printf("%s: %s\n", device_.c_str(), app::event_text(endpoint_, event).c_str());
        std::fflush(stdout);
    }
}

void Session::greet(uint64_t now)
{
    ControlMessage hello{Kind::hello};
    hello.cpu = sched_getcpu();
    hello.text = app::read_machine().boot;
    hello.queues = queues_;
    hello.channels = duty_.listener != nullptr;
    hello.copy = duty_.copy;
    hello.most_built = longest_built(device_);
    send(std::move(hello), now);
}

void Session::obey(const ControlMessage &message, uint64_t now)
{
    switch (message.kind) {
    case Kind::hello:
        dropped_ = false;
        if (!client_known_) {
            std::printf("%s: a client has come\n", device_.c_str());
            std::fflush(stdout);
        }
        client_known_ = true;
        greet(now);
        break;
    case Kind::begin:
        begin(message, now);
        break;
    case Kind::stop:
        if (lcores_ == nullptr || message.serial != serial_)
            break;
        lcores_->stop_sending();
        stopping_ = true;
        promised_ = far_end_counts(point_) ? message.sent.messages : 0;
        seen_ = UINT64_MAX; // so that waiting begins now
        break;
    case Kind::rest:
        send({Kind::resting}, now);
        if (waiting_.empty())
            usleep(message.rest_ms * 1000);
        break;
    case Kind::copy:
        if (message.copy < copy_mode_count)
            next_copy_ = static_cast<CopyMode>(message.copy);
        send({Kind::copied}, now);
        break;
    case Kind::ready:
    case Kind::report:
    case Kind::resting:
    case Kind::copied:
    case Kind::sent:
        break;
    }
}

void Session::begin(const ControlMessage &message, uint64_t now)
{
    end_work();
    discard_received(endpoint_, queues_);
    channels_.discard_received();
    ControlMessage answer{Kind::ready};
    answer.serial = serial_ = message.serial;
    answer.text = prepare(message.point, now);
    answer.lcores = lcores_ != nullptr ? lcores_->lcores() : 0;
    answer.direct = region_ != nullptr && region_->is_open() && region_->direct();
    send(std::move(answer), now);
}

/// @return empty, or why this point cannot be done here
std::string Session::prepare(const Point &point, uint64_t now)
{
    const std::string wrong = check(point);
    if (!wrong.empty())
        return "the server refuses " + wrong;
    if (point.queues > queues_)
        return "serve with --queues " + std::to_string(point.queues);
    const uint32_t most = ntbmsg_endpoint_max_message(endpoint_);
    if (!is_one_sided(point.operation) && point.direction != Direction::out && point.size_to > most)
        return "the client takes " + std::to_string(most) + " bytes at most";
    if (wants_channel(point.operation) && !channels_.has(point.queues))
        return "no channels: serve with --operation send";
    region_ = std::make_unique<Region>();
    const std::string unexposed =
        exposes(point, false) ? region_->open(endpoint_, point) : std::string();
    if (!unexposed.empty())
        return unexposed;
    set_to_work(point, now);
    return {};
}

void Session::set_to_work(const Point &point, uint64_t now)
{
    point_ = point;
    steps_ = steps_for(point);
    notebook_ = std::make_unique<Notebook>();
    Works works;
    make_server_works({endpoint_, &channels_, region_.get()}, point, duty_.capture, *notebook_,
                      works);
    const bool realtime = duty_.realtime && point.run_us <= longest_realtime_us;
    // One file takes what all of them capture.
    lcores_ = std::make_unique<Lcores>(std::move(works), steps_,
                                       duty_.capture != nullptr ? 1 : duty_.lcores, realtime);
    lcores_->set_up(); // what the client has to say first is waited for at work
    lcores_->start(now);
    realtime_.emplace(realtime);
    stopping_ = said_sent_ = false;
    give_up_tsc_ = now + ms(point.run_us / 1000 + grace_ms);
}

void Session::say_sent(uint64_t now)
{
    said_sent_ = true;
    ControlMessage message{Kind::sent};
    message.serial = serial_;
    send(std::move(message), now);
}

void Session::finish_when_done(uint64_t now)
{
    const Lcores::Progress progress = lcores_->progress();
    if (progress.error != 0 || now > give_up_tsc_) {
        end_work();
        return;
    }
    const bool sent_all = !progress.sending && progress.sent_all;
    if (!stopping_) {
        if (sent_all && !said_sent_ && point_.direction == Direction::in)
            say_sent(now);
        return;
    }
    const uint64_t come = progress.received + progress.completed;
    if (come != seen_)
        patient_tsc_ = now + ms(missing_ms);
    seen_ = come;
    const bool all_there = progress.received >= promised_ && sent_all;
    if (all_there || now > patient_tsc_)
        report(now);
}

void Session::report(uint64_t now)
{
    lcores_->end();
    std::vector<ControlMessage> reports;
    for (size_t i = 0; i < lcores_->size(); ++i) {
        const Work &work = (*lcores_)[i];
        ControlMessage message{Kind::report};
        message.serial = serial_;
        message.lane = static_cast<uint32_t>(i);
        message.sent = work.sent();
        message.received = work.received();
        message.completed = work.completed();
        message.cpu_share = lcores_->cpu_share();
        message.served = region_->is_open() ? region_->served() : 0;
        reports.push_back(std::move(message));
    }
    ++points_;
    end_work();
    for (ControlMessage &message : reports)
        send(std::move(message), now);
}

void Session::end_work()
{
    lcores_.reset();
    notebook_.reset();
    region_.reset();
    realtime_.reset();
    const std::string unwritten = duty_.capture != nullptr ? duty_.capture->flush() : std::string();
    if (!unwritten.empty())
        error_ = unwritten;
}

void Session::peer_left()
{
    waiting_.clear();
    dropped_ = complained_ = false;
    end_work();
    channels_.close();
    link_is_down_ = true;
    if (next_copy_ || !client_known_)
        return;
    if (duty_.copy != static_cast<uint32_t>(duty_.usual_copy))
        next_copy_ = duty_.usual_copy;
    std::printf("%s: the client has left after %" PRIu64 " measurements\n", device_.c_str(),
                points_);
    client_known_ = false;
    points_ = 0;
    ++clients_left_;
}

} // namespace pktgen
