// SPDX-License-Identifier: BSD-3-Clause
#include "session.hpp"

#include <cinttypes>
#include <cstdio>
#include <sched.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "device.hpp"
#include "machine.hpp"
#include "make_work.hpp"
#include "peer.hpp"

namespace pktgen
{

namespace
{

// Messages that a driver says it has sent are there within a moment, or never; a busy machine may
// take a core away for some of it.
constexpr uint64_t missing_ms = 4000;
// What a driver needs beyond the time that it asked for: to set up, to stop, to wait for answers.
constexpr uint64_t grace_ms = 60000;
constexpr uint64_t events_ms = 1;

uint64_t ms(uint64_t count)
{
    return rte_get_tsc_hz() / 1000 * count;
}

} // namespace

Session::Session(std::string device, ntbmsg_endpoint *endpoint, const Needs &needs,
                 ntbmsg_listener *listener, Capture *capture, bool realtime)
    : device_(std::move(device)), endpoint_(endpoint), queues_(static_cast<uint32_t>(needs.queues)),
      listener_(listener), capture_(capture), control_(endpoint, Role::server, new_run()),
      channels_(endpoint, listener != nullptr ? queues_ : 0, needs.longest),
      may_be_realtime_(realtime)
{
}

void Session::round(uint64_t now)
{
    if (work_ != nullptr) {
        work_->slice(steps_);
        work_->look(now);
        finish_when_done(now);
    }
    if (const auto message = control_.poll())
        obey(*message, now);
    if (now < next_events_)
        return;
    next_events_ = now + ms(events_ms);
    if (!control_.refusal().empty())
        error_ = control_.refusal();
    look_at_events();
    if (listener_ != nullptr) {
        channels_.poll();
        channels_.accept(listener_);
    }
}

void Session::look_at_events()
{
    ntbmsg_event_kind event;
    while (ntbmsg_event_poll(endpoint_, &event) == 1) {
        if (event == NTBMSG_EVENT_BACK)
            greet();
        else if (event == NTBMSG_EVENT_LOST)
            peer_left();
        else if (event == NTBMSG_EVENT_REFUSED)
            std::printf("%s: a peer was refused: %s\n", device_.c_str(),
                        app::why_no_peer(endpoint_).c_str());
        std::fflush(stdout);
    }
}

void Session::greet()
{
    ControlMessage hello{Kind::hello};
    hello.cpu = sched_getcpu();
    hello.text = app::read_machine().boot;
    hello.queues = queues_;
    hello.channels = listener_ != nullptr;
    control_.send(hello); // a peer that has left already is told by an event
}

void Session::obey(const ControlMessage &message, uint64_t now)
{
    if (message.role == Role::server) {
        error_ = "the peer serves as well: one end has to drive, without --serve";
        return;
    }
    switch (message.kind) {
    case Kind::hello:
        driver_known_ = true;
        std::printf("%s: a driver has come\n", device_.c_str());
        std::fflush(stdout);
        greet();
        break;
    case Kind::begin:
        begin(message, now);
        break;
    case Kind::stop:
        if (work_ == nullptr || message.serial != serial_)
            break;
        work_->stop_sending();
        stopping_ = true;
        promised_ = message.sent.messages;
        seen_ = UINT64_MAX; // so that waiting begins now
        break;
    case Kind::rest:
        control_.send({Kind::resting});
        usleep(message.rest_ms * 1000);
        break;
    case Kind::ready:
    case Kind::report:
    case Kind::resting:
        break;
    }
}

void Session::begin(const ControlMessage &message, uint64_t now)
{
    end_work();
    drain(endpoint_, queues_);
    channels_.drain();
    ControlMessage answer{Kind::ready};
    answer.serial = serial_ = message.serial;
    answer.text = prepare(message.point, now);
    if (control_.send(answer) != 0)
        end_work();
}

/// @return empty, or why this point cannot be done here
std::string Session::prepare(const Point &point, uint64_t now)
{
    const std::string wrong = check(point);
    if (!wrong.empty())
        return "the server refuses " + wrong;
    if (point.queues > queues_)
        return "serve with --queues " + std::to_string(point.queues);
    const uint32_t most = ntbmsg_max_message(endpoint_);
    if (point.way != Way::out && point.size_to > most)
        return "the driver takes " + std::to_string(most) + " bytes at most";
    if (point.operation == Operation::send && !channels_.has(point.queues))
        return "no channels: serve with --operation send";
    work_ = make_server_work({endpoint_, &channels_}, point, capture_, now);
    steps_ = steps_for(point);
    realtime_.emplace(may_be_realtime_ && point.run_us <= longest_realtime_us);
    stopping_ = false;
    give_up_tsc_ = now + ms(point.run_us / 1000 + grace_ms);
    return {};
}

void Session::finish_when_done(uint64_t now)
{
    if (work_->error() != 0 || now > give_up_tsc_) {
        end_work();
        return;
    }
    if (!stopping_)
        return;
    const uint64_t come = work_->received().messages;
    if (come != seen_)
        patient_tsc_ = now + ms(missing_ms);
    seen_ = come;
    const bool all_there = come >= promised_ && work_->sent_all();
    if (all_there || now > patient_tsc_)
        report();
}

void Session::report()
{
    ControlMessage message{Kind::report};
    message.serial = serial_;
    message.sent = work_->sent();
    message.received = work_->received();
    message.received.counted_ticks =
        static_cast<uint64_t>(static_cast<double>(message.received.counted_ticks) * 1e9 /
                              static_cast<double>(rte_get_tsc_hz()));
    ++points_;
    end_work();
    control_.send(message);
}

void Session::end_work()
{
    work_.reset();
    realtime_.reset();
    const std::string unwritten = capture_ != nullptr ? capture_->flush() : std::string();
    if (!unwritten.empty())
        error_ = unwritten;
}

void Session::peer_left()
{
    end_work();
    channels_.close();
    if (!driver_known_)
        return;
    std::printf("%s: the driver has left after %" PRIu64 " measurements\n", device_.c_str(),
                points_);
    driver_known_ = false;
    points_ = 0;
    ++drivers_left_;
}

} // namespace pktgen
