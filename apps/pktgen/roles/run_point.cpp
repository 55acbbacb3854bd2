// SPDX-License-Identifier: BSD-3-Clause
#include "roles/run_point.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <rte_cycles.h>

#include "measure/lcores.hpp"
#include "realtime.hpp"
#include "results/flows.hpp"
#include "signals.hpp"

namespace pktgen
{

namespace
{

// What is on its way comes within a moment, or never; a busy machine may take a core away for some
// of it.
constexpr double missing_seconds = 4;

// A rate beyond what the system takes ends after so many times its duration.
constexpr double most_overtime = 2;

double hz()
{
    return static_cast<double>(rte_get_tsc_hz());
}

class Run
{
public:
    Run(std::span<ServerLink *const> servers, const Point &point, uint32_t serial,
        ClientExtras extras);

    app::ResultPoint take();

private:
    bool begin();
    bool expose();
    bool set_up();
    void measure();
    void settle();
    bool stop();
    bool take_report(ServerLink &server, uint32_t lane);
    void await_the_rest();
    template <typename Seen>
    bool go_on_while_progress(Seen &seen, uint64_t &patient_until);
    bool peer_was_lost();
    bool servers_have_sent(uint64_t now);
    uint64_t promised() const;
    void collect(app::ResultPoint &result) const;
    const Work &work_of(size_t server, uint32_t lane) const
    {
        return (*lcores_)[server * point_.queues + lane];
    }

    const std::span<ServerLink *const> servers_;
    const Point point_;
    const uint32_t serial_;
    const unsigned steps_;
    const ClientExtras extras_;
    Notebook notebook_;
    std::vector<std::unique_ptr<Region>> regions_; ///< one a server
    std::unique_ptr<Lcores> lcores_;
    std::vector<ControlMessage> reports_; ///< of each queue, in the order of works
    uint32_t server_lcores_ = 0;
    bool direct_ = false;
    uint64_t begin_tsc_ = 0, end_tsc_ = 0;
    size_t sent_servers_ = 0;    ///< that have said so
    uint64_t next_question_ = 0; ///< control messages are not part of what is measured
    bool interrupted_ = false;
    std::string error_;
};

Run::Run(std::span<ServerLink *const> servers, const Point &point, uint32_t serial,
         ClientExtras extras)
    : servers_(servers), point_(point), serial_(serial), steps_(steps_for(point)), extras_(extras)
{
}

bool Run::begin()
{
    if (!expose())
        return false;
    for (ServerLink *server : servers_) {
        server->discard_received(point_.queues);
        ControlMessage message{Kind::begin};
        message.serial = serial_;
        message.point = point_;
        // All servers know of it before the first starts: what a server sends from then on waits in
        // its ring.
        if (!server->send(message))
            return false;
    }
    for (ServerLink *server : servers_) {
        const auto ready = server->await(Kind::ready, serial_);
        if (!ready)
            return false;
        if (!ready->text.empty()) {
            error_ = server->device() + ": " + ready->text;
            return false;
        }
        server_lcores_ = ready->lcores;
        direct_ = direct_ || ready->direct;
    }
    Works works;
    for (size_t i = 0; i < servers_.size(); ++i)
        make_client_works(servers_[i]->transports(regions_[i].get()), point_, extras_, notebook_,
                          works);
    // One file takes what all of them capture.
    const unsigned lcores = extras_.capture != nullptr ? 1 : extras_.lcores;
    lcores_ = std::make_unique<Lcores>(std::move(works), steps_, lcores,
                                       extras_.realtime && point_.run_us <= longest_realtime_us);
    return set_up();
}

/// What servers post on. @return false: error_ says why not
bool Run::expose()
{
    for (const ServerLink *server : servers_) {
        regions_.push_back(std::make_unique<Region>());
        if (!exposes(point_, true))
            continue;
        error_ = regions_.back()->open(server->endpoint(), point_);
        if (!error_.empty())
            return false;
        direct_ = regions_.back()->direct();
    }
    return true;
}

/// Both ends get to know each other's memory, where there is any.
bool Run::set_up()
{
    const uint64_t give_up = rte_rdtsc() + static_cast<uint64_t>(missing_seconds * hz());
    while (!lcores_->set_up()) {
        if (peer_was_lost())
            return false;
        interrupted_ = app::stop_signal() != 0;
        if (rte_rdtsc() > give_up)
            error_ = "the peer sent no token of the memory that it exposes";
        if (interrupted_ || !error_.empty())
            return false;
    }
    for (ServerLink *server : servers_)
        server->leave_channels(true);
    begin_tsc_ = end_tsc_ = rte_rdtsc();
    lcores_->start(begin_tsc_);
    return true;
}

void Run::measure()
{
    // With a rate, the number of messages ends it; what has to wait may take its time, up to a
    // limit.
    const double most = (point_.rate > 0 ? most_overtime : 1) * static_cast<double>(point_.run_us);
    const uint64_t end = begin_tsc_ + static_cast<uint64_t>(most / 1e6 * hz());
    const bool sends = point_.direction != Direction::in;
    for (;;) {
        lcores_->round(steps_);
        const bool lost = peer_was_lost();
        interrupted_ = app::stop_signal() != 0;
        const Lcores::Progress progress = lcores_->progress();
        if (rte_rdtsc() >= end || interrupted_ || progress.error != 0 ||
            (sends ? !progress.sending : servers_have_sent(rte_rdtsc())) || lost)
            break;
    }
    end_tsc_ = rte_rdtsc();
}

bool Run::servers_have_sent(uint64_t now)
{
    if (now < next_question_)
        return false;
    next_question_ = now + rte_get_tsc_hz() / 1000;
    for (ServerLink *server : servers_)
        sent_servers_ += server->says_sent(serial_) ? 1 : 0;
    return sent_servers_ == servers_.size();
}

uint64_t Run::promised() const
{
    uint64_t all = 0;
    for (const ControlMessage &report : reports_)
        all += report.sent.messages;
    return all;
}

bool Run::peer_was_lost()
{
    const uint64_t now = rte_rdtsc();
    for (ServerLink *server : servers_)
        server->watch(now);
    return std::any_of(servers_.begin(), servers_.end(),
                       [](const ServerLink *server) { return !server->error().empty(); });
}

/// @return false when nothing has come for a while, or nothing will: the peer was lost, or a
/// signal has ended the wait
template <typename Seen>
bool Run::go_on_while_progress(Seen &seen, uint64_t &patient_until)
{
    if (peer_was_lost() || app::stop_is_overdue())
        return false;
    const uint64_t now = rte_rdtsc();
    const Lcores::Progress progress = lcores_->progress();
    const Seen come = {progress.received, progress.completed};
    if (come != seen)
        patient_until = now + static_cast<uint64_t>(missing_seconds * hz());
    seen = come;
    return now < patient_until;
}

/// What is ready still goes, and what was sent is still answered.
void Run::settle()
{
    lcores_->stop_sending();
    std::pair<uint64_t, uint64_t> seen = {UINT64_MAX, 0};
    uint64_t patient_until = 0;
    do
        lcores_->round(1);
    while ((lcores_->progress().sending || !lcores_->progress().sent_all) &&
           go_on_while_progress(seen, patient_until));
}

bool Run::take_report(ServerLink &server, uint32_t lane)
{
    const auto report = server.await(Kind::report, serial_, [&] { lcores_->round(1); });
    if (!report)
        return false;
    if (report->lane != lane) {
        error_ = server.device() + ": the peer reports in another order";
        return false;
    }
    reports_.push_back(*report);
    return true;
}

bool Run::stop()
{
    for (size_t i = 0; i < servers_.size(); ++i) {
        ControlMessage message{Kind::stop};
        message.serial = serial_;
        for (uint32_t lane = 0; lane < point_.queues; ++lane)
            message.sent.messages += work_of(i, lane).sent().messages;
        if (!servers_[i]->send(message))
            return false;
    }
    for (ServerLink *server : servers_) {
        for (uint32_t lane = 0; lane < point_.queues; ++lane) {
            if (!take_report(*server, lane))
                return false;
        }
    }
    return true;
}

void Run::await_the_rest()
{
    std::pair<uint64_t, uint64_t> seen = {UINT64_MAX, 0};
    uint64_t patient_until = 0;
    while (lcores_->progress().received < promised() && go_on_while_progress(seen, patient_until))
        lcores_->round(1);
}

app::ResultPoint Run::take()
{
    app::ResultPoint result;
    bool good = begin();
    if (good) {
        {
            const app::Realtime realtime(extras_.realtime && point_.run_us <= longest_realtime_us);
            measure();
        }
        settle();
        good = stop();
        if (good && far_end_counts(point_) && point_.direction != Direction::echo)
            await_the_rest();
        lcores_->end();
        for (ServerLink *server : servers_)
            server->leave_channels(false);
    }
    collect(result);
    for (const ServerLink *server : servers_) {
        if (!server->error().empty() && error_.empty())
            error_ = server->error();
    }
    const int failed = lcores_ != nullptr ? lcores_->progress().error : 0;
    if (failed != 0 && error_.empty())
        error_ = std::string("sending or receiving failed: ") + std::strerror(-failed);
    interrupted_ = interrupted_ || (!good && app::stop_signal() != 0);
    result.error = !error_.empty() ? error_ : interrupted_ ? "ended by a signal" : "";
    result.complete = good && result.error.empty();
    return result;
}

void Run::collect(app::ResultPoint &result) const
{
    if (lcores_ == nullptr)
        return;
    std::vector<Account> accounts;
    for (size_t i = 0; i < lcores_->size(); ++i) {
        Account account;
        account.device =
            servers_.size() > 1 ? servers_[i / point_.queues]->device() : std::string();
        account.queue = static_cast<uint32_t>(i % point_.queues);
        account.cpu = lcores_->cpu_of(i);
        account.here = &(*lcores_)[i];
        account.there = i < reports_.size() ? &reports_[i] : nullptr;
        accounts.push_back(account);
    }
    add_flows(point_, extras_.replay, accounts, result);
    result.seconds = static_cast<double>(end_tsc_ - begin_tsc_) / hz();
    result.lcores = lcores_->lcores();
    result.cpu_share = lcores_->cpu_share();
    for (const ControlMessage &report : reports_)
        result.cpu_share = std::min(result.cpu_share, report.cpu_share);
    result.server_lcores = server_lcores_;
    result.region = !is_one_sided(point_.operation) ? "none" : direct_ ? "direct" : "served";
    for (const auto &region : regions_)
        result.served += region->is_open() ? region->served() : 0;
    app::Histogram actual, intended;
    for (const auto &timings : notebook_.timings) {
        actual.add(timings->actual);
        intended.add(timings->intended);
    }
    const double ns_per_tick = 1e9 / hz();
    if (actual.count() != 0)
        result.latency = app::latency_of(actual, ns_per_tick);
    if (intended.count() != 0)
        result.latency_from_intended = app::latency_of(intended, ns_per_tick);
}

} // namespace

app::ResultPoint run_point(std::span<ServerLink *const> servers, const Point &point,
                           uint32_t serial, ClientExtras extras)
{
    return Run(servers, point, serial, extras).take();
}

} // namespace pktgen
