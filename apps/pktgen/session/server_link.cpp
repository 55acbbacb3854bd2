// SPDX-License-Identifier: BSD-3-Clause
#include "session/server_link.hpp"

#include <cerrno>
#include <cstring>
#include <sched.h>

#include <rte_cycles.h>

#include "core_probe.hpp"
#include "machine.hpp"
#include "signals.hpp"
#include "units.hpp"

namespace pktgen
{

namespace
{

// The probe takes some milliseconds, and up to 100 ms where the other CPU is busy.
constexpr uint32_t rest_ms = 25;
// A server that polls takes a message at once; a busy machine may take a core away for some time.
constexpr double send_patience_s = 1;

uint64_t ticks(double seconds)
{
    return static_cast<uint64_t>(seconds * static_cast<double>(rte_get_tsc_hz()));
}

} // namespace

ServerLink::ServerLink(std::string device, const Needs &needs, double timeout_s, uint64_t run)
    : device_(std::move(device)), timeout_s_(timeout_s), needs_(needs),
      endpoint_(device_, endpoint_options(needs)), control_(endpoint_.get(), Role::client, run),
      channels_(endpoint_.get(), needs.channels ? static_cast<uint32_t>(needs.queues) : 0,
                needs.longest)
{
}

void ServerLink::fail(std::string error)
{
    if (error_.empty())
        error_ = device_ + ": " + std::move(error);
}

std::string ServerLink::meet()
{
    const app::Peer peer = app::await_peer(endpoint(), timeout_s_);
    if (peer == app::Peer::connected)
        return greet();
    if (peer == app::Peer::interrupted)
        return {};
    return device_ + ": " + app::why_not_connected(endpoint(), peer, timeout_s_);
}

std::string ServerLink::greet()
{
    ControlMessage hello{Kind::hello};
    hello.cpu = sched_getcpu();
    hello.text = app::read_machine().boot;
    hello.queues = static_cast<uint32_t>(needs_.queues);
    hello.channels = needs_.channels;
    if (!send(hello))
        return error_;
    const auto answer = await(Kind::hello, 0);
    if (!answer)
        return error_;
    server_cpu_ = answer->cpu;
    server_boot_ = answer->text;
    server_copy_ = answer->copy;
    longest_built_ = answer->most_built;
    const std::string unlike = match(*answer);
    return unlike.empty() ? channels_.connect(timeout_s_) : unlike;
}

std::string ServerLink::ask_copy(CopyMode mode)
{
    ControlMessage copy{Kind::copy};
    copy.copy = static_cast<uint32_t>(mode);
    return send(copy) && await(Kind::copied, 0) ? std::string() : error_;
}

std::string ServerLink::meet_with_copy(CopyMode mode)
{
    const uint64_t give_up = rte_rdtsc() + ticks(timeout_s_);
    std::string error;
    do {
        ntbmsg_event old;
        while (ntbmsg_endpoint_event_poll(endpoint(), &old) == 1) {
        }
        channels_.close();
        error_.clear();
        error = meet();
        if (error.empty() && app::stop_signal() == 0 && server_copy_ != static_cast<uint32_t>(mode))
            error = device_ + ": the server cannot copy by " + name_of(mode);
    } while (!error.empty() && server_copy_ != copy_refused && rte_rdtsc() < give_up &&
             app::stop_signal() == 0);
    return error;
}

/// Queue pairs of channels come behind the others, so their numbers have to be the same.
std::string ServerLink::match(const ControlMessage &hello) const
{
    const bool alike = hello.channels == needs_.channels && hello.queues == needs_.queues;
    if (alike || !(hello.channels || needs_.channels))
        return {};
    if (!needs_.channels)
        return device_ + ": the server has channels: serve without --operation send";
    return device_ + ": serve with --operation send --queues " + std::to_string(needs_.queues);
}

uint32_t ServerLink::max_message(Operation operation) const
{
    if (is_one_sided(operation))
        return channels_.has(1) ? largest_operation : 0;
    return operation == Operation::send ? channels_.max_message()
                                        : ntbmsg_endpoint_max_message(endpoint());
}

void ServerLink::discard_received(uint32_t queues)
{
    pktgen::discard_received(endpoint(), queues);
    channels_.discard_received();
}

/// Whether a wait for the peer goes on: it is there, and neither the time nor a signal ends it.
bool ServerLink::may_wait(uint64_t give_up)
{
    const uint64_t now = rte_rdtsc();
    watch(now);
    return error_.empty() && now < give_up && !app::stop_is_overdue();
}

bool ServerLink::send(const ControlMessage &message)
{
    const uint64_t give_up = rte_rdtsc() + ticks(send_patience_s);
    int rc = control_.send(message);
    while (rc == -EAGAIN && may_wait(give_up))
        rc = control_.send(message);
    if (rc == -ENOTCONN)
        fail("the peer was lost");
    else if (rc == -EAGAIN && !app::stop_is_overdue())
        fail("the peer takes no messages");
    else if (rc != 0 && rc != -EAGAIN)
        fail(std::string("nothing can be sent to the peer: ") + strerror(-rc));
    return rc == 0;
}

std::optional<ControlMessage> ServerLink::await(Kind kind, uint32_t serial,
                                                const std::function<void()> &meanwhile)
{
    const uint64_t give_up = rte_rdtsc() + ticks(timeout_s_);
    while (error_.empty()) {
        if (meanwhile)
            meanwhile();
        const auto message = control_.poll();
        if (!control_.refusal().empty())
            fail(control_.refusal());
        else if (message && message->role == Role::client)
            fail("the peer drives as well: one end has to --serve");
        else if (message && message->kind == kind && message->serial == serial)
            return message;
        // What is being measured is brought to its end; nothing new is waited for.
        const bool stopped = app::stop_signal() != 0 && kind != Kind::report;
        if (stopped || app::stop_is_overdue())
            break;
        if (!may_wait(give_up) && !app::stop_is_overdue())
            fail("the peer gave no answer in " + app::with_unit(timeout_s_, "s"));
    }
    return std::nullopt;
}

bool ServerLink::says_sent(uint32_t serial)
{
    const auto message = control_.poll();
    return message && message->kind == Kind::sent && message->serial == serial;
}

void ServerLink::watch(uint64_t now)
{
    if (now < next_watch_)
        return;
    next_watch_ = now + rte_get_tsc_hz() / 1000;
    if (needs_.channels && !channels_are_driven_)
        channels_.poll();
    ntbmsg_event event;
    while (ntbmsg_endpoint_event_poll(endpoint(), &event) == 1) {
        if (event == NTBMSG_EVENT_LOST || event == NTBMSG_EVENT_REFUSED)
            fail(app::event_text(endpoint(), event));
    }
}

bool ServerLink::same_machine() const
{
    return server_boot_ == app::read_machine().boot;
}

std::optional<double> ServerLink::probe()
{
    ControlMessage rest{Kind::rest};
    rest.rest_ms = rest_ms;
    if (!same_machine() || !send(rest) || !await(Kind::resting, 0))
        return std::nullopt;
    return app::probe_core(server_cpu_);
}

} // namespace pktgen
