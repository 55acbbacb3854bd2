// SPDX-License-Identifier: BSD-3-Clause
#include "run_point.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include <rte_cycles.h>

#include "realtime.hpp"
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
    Run(std::span<Line *const> lines, const Point &point, uint32_t serial, DriverExtras extras);

    app::ResultPoint take();

private:
    bool begin();
    void measure();
    void settle();
    bool stop();
    void await_the_rest();
    void work(unsigned steps);
    bool go_on_while_progress(uint64_t &seen, uint64_t &patient_until) const;
    uint64_t received() const;
    uint64_t promised() const;
    bool sent_all() const;
    void collect(app::ResultPoint &result) const;
    void collect_flows(app::ResultPoint &result, size_t line) const;
    void check_sums(app::ResultPoint &result, const Sent &sent, const Received &received) const;

    const std::span<Line *const> lines_;
    const Point point_;
    const uint32_t serial_;
    const unsigned steps_;
    std::unique_ptr<Timings> timings_ = std::make_unique<Timings>();
    DriverExtras extras_;
    std::vector<std::unique_ptr<Work>> works_;
    std::vector<ControlMessage> reports_;
    uint64_t begin_tsc_ = 0, end_tsc_ = 0;
    bool interrupted_ = false;
    std::string error_;
};

Run::Run(std::span<Line *const> lines, const Point &point, uint32_t serial, DriverExtras extras)
    : lines_(lines), point_(point), serial_(serial),
      steps_(std::max<unsigned>(1, steps_for(point) / static_cast<unsigned>(lines.size()))),
      extras_(extras)
{
    extras_.timings = timings_.get();
}

bool Run::begin()
{
    for (Line *line : lines_) {
        line->drain(point_.queues);
        ControlMessage message{Kind::begin};
        message.serial = serial_;
        message.point = point_;
        // All are told before the first starts: what a server sends from then on waits in its ring.
        if (!line->send(message))
            return false;
    }
    for (Line *line : lines_) {
        const auto ready = line->await(Kind::ready, serial_);
        if (!ready)
            return false;
        if (!ready->text.empty()) {
            error_ = line->device() + ": " + ready->text;
            return false;
        }
    }
    begin_tsc_ = rte_rdtsc();
    for (Line *line : lines_)
        works_.push_back(make_driver_work(line->ways(), point_, extras_, begin_tsc_));
    return true;
}

void Run::work(unsigned steps)
{
    for (const auto &work : works_)
        work->slice(steps);
    const uint64_t now = rte_rdtsc();
    for (const auto &work : works_)
        work->look(now);
}

void Run::measure()
{
    // With a rate, the number of messages ends it; what has to wait may take its time, up to a
    // limit.
    const double most = (point_.rate > 0 ? most_overtime : 1) * static_cast<double>(point_.run_us);
    const uint64_t end = begin_tsc_ + static_cast<uint64_t>(most / 1e6 * hz());
    const bool sends = point_.way != Way::in;
    const auto ended = [&](const auto &work) {
        return work->error() != 0 || (sends && !work->sending());
    };
    const auto lost = [](const Line *line) { return !line->error().empty(); };
    for (;;) {
        work(steps_);
        const uint64_t now = rte_rdtsc();
        for (Line *line : lines_)
            line->watch(now);
        interrupted_ = app::stop_signal() != 0;
        if (now >= end || interrupted_ || std::all_of(works_.begin(), works_.end(), ended) ||
            std::any_of(lines_.begin(), lines_.end(), lost))
            break;
    }
    end_tsc_ = rte_rdtsc();
}

uint64_t Run::received() const
{
    uint64_t all = 0;
    for (const auto &work : works_)
        all += work->received().messages;
    return all;
}

uint64_t Run::promised() const
{
    uint64_t all = 0;
    for (const ControlMessage &report : reports_)
        all += report.sent.messages;
    return all;
}

bool Run::sent_all() const
{
    return std::all_of(works_.begin(), works_.end(), [](const auto &work) {
        return work->error() != 0 || (!work->sending() && work->sent_all());
    });
}

/// @return false when nothing has come for a while
bool Run::go_on_while_progress(uint64_t &seen, uint64_t &patient_until) const
{
    const uint64_t now = rte_rdtsc();
    const uint64_t come = received();
    if (come != seen)
        patient_until = now + static_cast<uint64_t>(missing_seconds * hz());
    seen = come;
    return now < patient_until;
}

/// What is ready still goes, and what was sent is still answered.
void Run::settle()
{
    for (const auto &work : works_)
        work->stop_sending();
    uint64_t seen = UINT64_MAX, patient_until = 0;
    while (!sent_all() && go_on_while_progress(seen, patient_until))
        work(1);
}

bool Run::stop()
{
    for (size_t i = 0; i < lines_.size(); ++i) {
        ControlMessage message{Kind::stop};
        message.serial = serial_;
        message.sent = works_[i]->sent();
        if (!lines_[i]->send(message))
            return false;
    }
    for (Line *line : lines_) {
        const auto report = line->await(Kind::report, serial_, [&] { work(1); });
        if (!report)
            return false;
        reports_.push_back(*report);
    }
    return true;
}

void Run::await_the_rest()
{
    uint64_t seen = UINT64_MAX, patient_until = 0;
    while (received() < promised() && go_on_while_progress(seen, patient_until))
        work(1);
}

app::ResultPoint Run::take()
{
    app::ResultPoint result;
    bool good = begin();
    if (good) {
        {
            const Realtime realtime(extras_.realtime && point_.run_us <= longest_realtime_us);
            measure();
        }
        settle();
        good = stop();
        if (good && point_.way != Way::echo)
            await_the_rest();
    }
    collect(result);
    for (const Line *line : lines_) {
        if (!line->error().empty() && error_.empty())
            error_ = line->error();
    }
    for (const auto &work : works_) {
        if (work->error() != 0 && error_.empty())
            error_ = std::string("sending or receiving failed: ") + std::strerror(-work->error());
    }
    result.error = !error_.empty() ? error_ : interrupted_ ? "ended by a signal" : "";
    result.complete = good && result.error.empty();
    return result;
}

void Run::check_sums(app::ResultPoint &result, const Sent &sent, const Received &received) const
{
    result.corrupt += received.corrupt;
    result.out_of_order += received.out_of_order;
    const uint64_t missing = sent.messages - std::min(sent.messages, received.messages);
    result.lost += missing;
    const bool other_bytes = missing == 0 && sent.bytes != received.bytes;
    const bool other_sum = missing == 0 && point_.pattern == Pattern::counter && !extras_.replay &&
                           sent.sum != received.sum;
    // A sum does not say how many.
    if ((other_bytes || other_sum || received.messages > sent.messages) && result.corrupt == 0)
        result.corrupt = 1;
}

app::Flow flow_of(std::string name, const Received &received, double ticks_per_second)
{
    return {std::move(name), received.counted_messages, received.counted_bytes,
            static_cast<double>(received.counted_ticks) / ticks_per_second};
}

void Run::collect_flows(app::ResultPoint &result, size_t i) const
{
    const Work &here = *works_[i];
    const bool reported = i < reports_.size();
    if (point_.way == Way::echo) {
        result.flows.push_back(flow_of("echo", here.received(), hz()));
        result.lost += here.unanswered();
        if (here.unanswered() == 0)
            check_sums(result, here.sent(), here.received());
    }
    if (reported && (point_.way == Way::out || point_.way == Way::both)) {
        constexpr double ns_per_second = 1e9;
        result.flows.push_back(flow_of("out", reports_[i].received, ns_per_second));
        check_sums(result, here.sent(), reports_[i].received);
    }
    if (point_.way == Way::in || point_.way == Way::both) {
        const std::string name = lines_.size() > 1 ? lines_[i]->device() : "in";
        result.flows.push_back(flow_of(name, here.received(), hz()));
        if (reported)
            check_sums(result, reports_[i].sent, here.received());
    }
    result.captured += here.received().captured + (reported ? reports_[i].received.captured : 0);
    result.tx_full += here.tx_full();
}

void Run::collect(app::ResultPoint &result) const
{
    for (size_t i = 0; i < works_.size(); ++i)
        collect_flows(result, i);
    result.seconds = static_cast<double>(end_tsc_ - begin_tsc_) / hz();
    const double ns_per_tick = 1e9 / hz();
    if (timings_->actual.count() != 0)
        result.latency = app::latency_of(timings_->actual, ns_per_tick);
    if (timings_->intended.count() != 0)
        result.latency_from_intended = app::latency_of(timings_->intended, ns_per_tick);
}

} // namespace

app::ResultPoint run_point(std::span<Line *const> lines, const Point &point, uint32_t serial,
                           DriverExtras extras)
{
    return Run(lines, point, serial, extras).take();
}

} // namespace pktgen
