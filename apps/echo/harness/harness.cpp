// SPDX-License-Identifier: BSD-3-Clause
#include "harness/harness.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <thread>

#include <rte_lcore.h>
#include <rte_rawdev.h>

#include "build.hpp"
#include "modes/generator.hpp"
#include "peer.hpp"
#include "signals.hpp"

namespace echo
{

namespace
{

// How long a signal or an event may have to wait for an answer.
constexpr auto look_interval = std::chrono::milliseconds(20);

struct Value {
    const char *name;
    uint64_t Settings::*field;
    uint64_t low, high;
};
constexpr Value values[] = {
    {"burst", &Settings::burst, 1, longest_burst},
    {"size", &Settings::size, 0, longest_message},
    {"in-flight", &Settings::in_flight, 1, most_in_flight},
    {"flows", &Settings::flows, 1, most_flows},
    {"count", &Settings::count, 0, UINT64_MAX},
};

Settings settings_of(const Options &o)
{
    Settings s;
    s.size = o.size;
    s.count = o.count;
    s.in_place = o.in_place;
    if (o.burst != 0)
        s.burst = o.burst;
    if (o.in_flight != 0)
        s.in_flight = o.in_flight;
    if (o.flows != 0)
        s.flows = o.flows;
    return s;
}

/// The settings as a mode takes them.
Settings for_mode(Settings settings, const Mode &mode)
{
    if (settings.size == 0)
        settings.size = mode.default_size;
    return settings;
}

} // namespace

Harness::Harness(ntbmsg_endpoint *endpoint, uint16_t device, const Options &options,
                 std::function<void()> on_period)
    : endpoint_(endpoint), device_(device), options_(options), on_period_(std::move(on_period)),
      settings_(settings_of(options)),
      carrier_(endpoint, options.channels, channel_credit_bytes(options), options.connect),
      queues_(options.queues + options.channels), next_stats_(Clock::now())
{
    unsigned lcore = 0;
    RTE_LCORE_FOREACH_WORKER(lcore)
    {
        workers_.push_back(std::make_unique<ForwardingLcore>(lcore));
    }
    settings_.files = &files_;
    settings_.ports = &ports_;
    set_mode(options.forward_mode.empty() ? "echo" : options.forward_mode, std::nullopt);
}

Harness::~Harness()
{
    stop();
}

std::string Harness::set_mode(const std::string &name, std::optional<uint64_t> queue)
{
    const Mode *mode = find_mode(name);
    if (mode == nullptr)
        return "there is no mode " + name + ": " + mode_names('|');
    if (queue && *queue >= queues_.size())
        return "there is no queue or channel " + std::to_string(*queue) + ", the last one is " +
               std::to_string(queues_.size() - 1);
    if (running_)
        return "stop first: a mode is chosen at start";
    for (size_t q = 0; q < queues_.size(); ++q) {
        if (!queue || *queue == q)
            queues_[q].mode = mode;
    }
    return {};
}

std::string Harness::set_number(const std::string &name, uint64_t value)
{
    const auto *found =
        std::ranges::find_if(values, [&](const Value &v) { return name == v.name; });
    if (found == std::end(values))
        return "there is nothing of the name " + name;
    if (value < found->low || value > found->high)
        return name + " " + std::to_string(value) + ": must be a number from " +
               std::to_string(found->low) + " to " + std::to_string(found->high);
    if (running_)
        return "stop first: " + name + " is taken over at start";
    settings_.*found->field = value;
    return {};
}

std::string Harness::set_build(const std::string &where)
{
    return running_ ? "stop first: build is taken over at start"
                    : app::parse_build(where, settings_.in_place);
}

bool Harness::uses(std::unique_ptr<Forwarder> (*make)(const Way &, const Settings &)) const
{
    return std::ranges::any_of(queues_, [=](const Queue &q) { return q.mode->make == make; });
}

std::string Harness::set_folder(const std::string &path)
{
    return running_ ? "stop first: the folder is in use" : files_.set_folder(path);
}

std::string Harness::send(const std::string &path)
{
    if (!uses(make_file))
        return "no queue is in mode file: set fwd file";
    std::vector<FileJob> jobs;
    uint64_t skipped = 0;
    if (std::string error = find_jobs(path, jobs, skipped); !error.empty())
        return error;
    if (skipped != 0)
        std::printf("left out: %" PRIu64 " links, devices, pipes and sockets\n", skipped);
    files_.add(std::move(jobs));
    return {};
}

std::string Harness::check_sizes() const
{
    const uint32_t peer_takes = ntbmsg_endpoint_max_message(endpoint_);
    for (const Queue &queue : queues_) {
        const Mode &mode = *queue.mode;
        const uint64_t size = for_mode(settings_, mode).size;
        if (mode.default_size == 0)
            continue;
        if (size < mode.least_size || size > mode.most_size)
            return std::string("mode ") + mode.name + " takes a size from " +
                   std::to_string(mode.least_size) + " to " + std::to_string(mode.most_size) +
                   ", not " + std::to_string(size);
        if (peer_takes != 0 && size > peer_takes)
            return "size " + std::to_string(size) + " is more than the peer takes, " +
                   std::to_string(peer_takes) + " bytes: start it with --max-message " +
                   std::to_string(size);
    }
    return {};
}

/// What a channel takes is known once it is open. (Mode file makes its messages no longer.)
/// @return empty, or what it does not take
std::string Harness::check_channel(uint16_t q) const
{
    const Mode &mode = *queues_[q].mode;
    const uint64_t size = for_mode(settings_, mode).size;
    if (mode.default_size == 0 || mode.make == make_file)
        return {};
    const uint32_t takes = way(q).max_message(), granted = way(q).granted_bytes();
    if (takes != 0 && size > takes)
        return name(q) + " takes messages of " + std::to_string(takes) +
               " bytes at most, not of size " + std::to_string(size) +
               ": start the peer with --max-message " + std::to_string(size) +
               ", or both with fewer --channels";
    if (mode.make == make_ping && granted != 0 && size > granted)
        return name(q) + " has room for answers of " + std::to_string(granted) +
               " bytes at most, not of size " + std::to_string(size) +
               ": start this side with --size " + std::to_string(size) +
               ", or both with fewer --channels";
    return {};
}

std::string Harness::check_channels()
{
    std::string error;
    if (!running_ || options_.channels == 0)
        return error;
    queues_.back().worker->call([&] {
        for (auto q = static_cast<uint16_t>(options_.queues); q < queues() && error.empty(); ++q)
            error = check_channel(q);
        all_fit_ = error.empty() && carrier_.all_open();
    });
    return error;
}

Way Harness::way(uint16_t q) const
{
    return {endpoint_, q, is_channel(q) ? carrier_.handle(q - options_.queues) : nullptr};
}

std::string Harness::name(uint16_t q) const
{
    return is_channel(q) ? "channel " + std::to_string(q - options_.queues)
                         : "queue " + std::to_string(q);
}

std::string Harness::channel_state(uint16_t q)
{
    std::string state;
    if (is_channel(q) && queues_[q].worker == nullptr)
        return "not started yet";
    if (is_channel(q))
        queues_[q].worker->call([&] { state = carrier_.state(q - options_.queues); });
    return state;
}

/// The link, and all channels where they are driven.
bool Harness::connected()
{
    bool open = ntbmsg_endpoint_link_state_get(endpoint_) == NTBMSG_LINK_CONNECTED;
    if (open && running_ && options_.channels != 0)
        queues_.back().worker->call([&] { open = carrier_.all_open(); });
    return open;
}

void Harness::make_forwarders()
{
    for (uint16_t q = 0; q < queues_.size(); ++q) {
        Queue &queue = queues_[q];
        queue.forwarder = queue.mode->make(way(q), for_mode(settings_, *queue.mode));
        // All channels belong to one worker of the library, so to one lcore.
        const size_t turn = is_channel(q) ? options_.queues : q;
        queue.worker = workers_[turn % workers_.size()].get();
        if (is_channel(q))
            carrier_.attach(q - options_.queues, queue.forwarder.get());
        queue.seen = {};
        queue.look = Clock::now();
    }
    for (auto &worker : workers_)
        worker->clear();
    if (options_.channels != 0)
        queues_.back().worker->add(&carrier_);
    for (auto &worker : workers_) {
        for (Queue &queue : queues_) {
            if (queue.worker == worker.get())
                worker->add(queue.forwarder.get());
        }
    }
}

/// Something to send round and round for queues that only send back what comes.
void Harness::prime_queues()
{
    Settings first = settings_;
    first.size = first.size != 0 ? first.size : 64;
    first.count = first.burst;
    for (uint16_t q = 0; q < queues_.size(); ++q) {
        Counters sent;
        if (queues_[q].mode->default_size == 0)
            Generator(first).round(way(q), sent, [](rte_mbuf *, uint64_t) {});
    }
}

std::string Harness::launch()
{
    for (auto &worker : workers_) {
        if (worker->empty())
            continue;
        if (!worker->launch()) {
            stop();
            return "lcore " + std::to_string(worker->lcore()) + " cannot be launched";
        }
        running_ = true;
    }
    return {};
}

std::string Harness::start(bool prime)
{
    if (running_)
        return "it is running";
    if (workers_.empty())
        return "no lcore is left to forward on: give EAL one more, -l 0,1 or, for two that share a "
               "CPU, --lcores 0@0,1@0";
    if (std::string error = check_sizes(); !error.empty())
        return error;
    if (std::string error = carrier_.listen(); !error.empty())
        return error;
    if (uses(make_io)) {
        if (std::string error = ports_.start(queues()); !error.empty())
            return error;
    }
    too_small_.clear();
    all_fit_ = false;
    make_forwarders();
    if (prime)
        prime_queues();
    return launch();
}

std::string Harness::stop()
{
    if (!running_)
        return "it is not running";
    for (auto &worker : workers_)
        worker->stop();
    ports_.stop();
    running_ = false;
    return {};
}

void Harness::inspect(uint16_t q, const std::function<void(Forwarder &)> &function)
{
    Queue &queue = queues_[q];
    if (queue.forwarder != nullptr)
        queue.worker->call([&] { function(*queue.forwarder); });
}

int Harness::lcore(uint16_t q) const
{
    return queues_[q].worker != nullptr ? static_cast<int>(queues_[q].worker->lcore()) : -1;
}

Harness::Since Harness::since_last(uint16_t q, const Counters &now)
{
    Queue &queue = queues_[q];
    const auto look = Clock::now();
    Since since{std::chrono::duration<double>(look - queue.look).count(), now};
    since.counters.rx_messages -= queue.seen.rx_messages;
    since.counters.rx_bytes -= queue.seen.rx_bytes;
    since.counters.tx_messages -= queue.seen.tx_messages;
    since.counters.tx_bytes -= queue.seen.tx_bytes;
    queue.look = look;
    queue.seen = now;
    return since;
}

std::string Harness::clear_stats()
{
    for (uint16_t q = 0; q < queues_.size(); ++q) {
        inspect(q, [](Forwarder &forwarder) { forwarder.clear(); });
        queues_[q].seen = {};
        queues_[q].look = Clock::now();
    }
    return rte_rawdev_xstats_reset(device_, nullptr, 0) == 0 ? std::string()
                                                             : "the device keeps its statistics";
}

void Harness::links_lost()
{
    too_small_.clear();
    all_fit_ = false;
    for (uint16_t q = 0; q < queues_.size(); ++q)
        inspect(q, [](Forwarder &forwarder) { forwarder.link_lost(); });
}

std::string Harness::set_link(bool up)
{
    const int rc = up ? rte_rawdev_start(device_) : (rte_rawdev_stop(device_), 0);
    if (!up)
        links_lost();
    return rc == 0 ? std::string()
                   : std::string("the device does not start: ") + std::strerror(-rc);
}

std::string Harness::set_copy(const std::string &mode)
{
    static constexpr const char *attribute = "copy_mode"; // its values are in this order
    const uint64_t wanted = mode == "dma" ? 2 : mode == "cpu" ? 1 : 0;
    uint64_t before = 0;
    rte_rawdev_get_attr(device_, attribute, &before);
    if (std::string error = set_link(false); !error.empty())
        return error;
    int rc = rte_rawdev_set_attr(device_, attribute, wanted);
    std::string error = rc == 0 ? set_link(true) : std::strerror(-rc);
    if (error.empty())
        return {};
    // As it was: the device stays usable.
    rc = rte_rawdev_set_attr(device_, attribute, before);
    const std::string worse = set_link(true);
    return "copy " + mode + ": " + error + (worse.empty() ? "" : "; and now " + worse);
}

void Harness::look_at_events()
{
    ntbmsg_event event;
    bool any = false;
    while (ntbmsg_endpoint_event_poll(endpoint_, &event) == 1) {
        any = true;
        if (event == NTBMSG_EVENT_LOST)
            links_lost();
        std::printf("link: %s\n", app::event_text(endpoint_, event).c_str());
    }
    if (any)
        std::fflush(stdout);
}

void Harness::print_notes()
{
    const std::vector<std::string> notes = files_.take_notes();
    for (const std::string &line : notes)
        std::printf("%s\n", line.c_str());
    if (!notes.empty())
        std::fflush(stdout);
}

/// Says once that nothing will ever go on a channel. The lcore that drives them is not asked any
/// more once all are open and take what they have to.
void Harness::look_at_channels()
{
    if (all_fit_ || !too_small_.empty() || (too_small_ = check_channels()).empty())
        return;
    std::printf("%s\n", too_small_.c_str());
    std::fflush(stdout);
}

void Harness::tick()
{
    look_at_events();
    look_at_channels();
    print_notes();
    if (options_.stats_period == 0 || Clock::now() < next_stats_)
        return;
    next_stats_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(options_.stats_period));
    on_period_();
    std::fflush(stdout);
}

/// @return empty when the fact came true or a signal asked for an end
std::string Harness::wait(double seconds, const std::function<bool()> &fact, const char *what)
{
    const auto begin = Clock::now();
    while (app::stop_signal() == 0) {
        tick();
        if (fact())
            return {};
        if (std::chrono::duration<double>(Clock::now() - begin).count() >= seconds)
            return what;
        std::this_thread::sleep_for(look_interval);
    }
    return {};
}

std::string Harness::wait_connected(double seconds)
{
    const std::string error = wait(
        seconds, [this] { return connected() || !too_small_.empty(); },
        "no peer connected in time: ");
    look_at_channels(); // the last one may have opened since the last tick
    if (!too_small_.empty())
        return too_small_;
    const std::string why = app::why_no_peer(endpoint_);
    return error.empty() ? error : error + (why.empty() ? "not all channels are open" : why);
}

std::string Harness::wait_done(double seconds)
{
    if (!running_)
        return "it is not running";
    const auto all_done = [this] {
        bool all = true;
        for (uint16_t q = 0; q < queues_.size(); ++q)
            inspect(q, [&](Forwarder &f) { all = all && (f.done() || !f.ends()); });
        return all || !too_small_.empty();
    };
    const std::string error = wait(seconds, all_done, "not done in time");
    print_notes();
    if (!too_small_.empty())
        return too_small_;
    return error.empty() ? files_.take_failures() : error;
}

std::string Harness::pause(double seconds)
{
    wait(
        seconds, [] { return false; }, "");
    return {};
}

} // namespace echo
