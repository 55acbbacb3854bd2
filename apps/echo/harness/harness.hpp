// SPDX-License-Identifier: BSD-3-Clause
// The harness: an endpoint whose queues are driven in modes of their own, from lcores of their own,
// while the main lcore takes commands.
#ifndef ECHO_HARNESS_HARNESS_HPP
#define ECHO_HARNESS_HARNESS_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "files/work.hpp"
#include "harness/lcore.hpp"
#include "modes/modes.hpp"
#include "modes/ports.hpp"
#include "options/command_line.hpp"
#include "traffic/carrier.hpp"

namespace echo
{

/// Everything is called by the main lcore. What can be refused returns an empty text, or one line
/// that says why.
class Harness
{
public:
    /// @param endpoint  open; closed after the harness is destroyed
    /// @param on_period  called every --stats-period
    Harness(ntbmsg_endpoint *endpoint, uint16_t device, const Options &options,
            std::function<void()> on_period);
    ~Harness();
    Harness(const Harness &) = delete;
    Harness &operator=(const Harness &) = delete;

    /// @param queue  none: all of them
    std::string set_mode(const std::string &mode, std::optional<uint64_t> queue);
    /// "burst", "size", "in-flight", "flows" or "count"
    std::string set_number(const std::string &name, uint64_t value);

    /// "mbuf" or "in-place": where mode echo builds what it sends.
    std::string set_build(const std::string &where);

    /// Where mode file puts what the peer sends.
    std::string set_folder(const std::string &path);
    /// Has mode file send a file, or a folder and what is in it.
    std::string send(const std::string &path);

    /// @param prime  each queue in mode echo sends a burst first
    std::string start(bool prime);
    std::string stop();
    std::string clear_stats();
    /// Stops the device, or starts it again: the peer sees this host leave and connect.
    std::string set_link(bool up);

    /// "auto", "cpu" or "dma". The connection is made anew.
    std::string set_copy(const std::string &mode);

    std::string wait_connected(double seconds);
    /// Until every mode that has an end has come to it.
    std::string wait_done(double seconds);
    std::string pause(double seconds);

    /// What is to be done from time to time: events of the link, the periodic statistics.
    void tick();

    /// Calls @p function for the forwarder of @p queue, on its lcore while that runs. Nothing is
    /// called before the first start.
    void inspect(uint16_t queue, const std::function<void(Forwarder &)> &function);

    bool running() const { return running_; }
    uint16_t device() const { return device_; }
    ntbmsg_endpoint *endpoint() const { return endpoint_; }
    const Options &options() const { return options_; }
    const FileWork &files() const { return files_; }
    const Settings &settings() const { return settings_; }
    /// Queues and, counted on, channels.
    uint16_t queues() const { return static_cast<uint16_t>(queues_.size()); }
    const Mode &mode(uint16_t queue) const { return *queues_[queue].mode; }
    /// "queue 3", "channel 0"
    std::string name(uint16_t queue) const;
    /// Where a channel stands, in words; empty for a queue.
    std::string channel_state(uint16_t queue);
    /// @return the lcore that drives the queue, or -1 before the first start
    int lcore(uint16_t queue) const;
    /// Seconds since the last call, and what was counted in them: for rates.
    struct Since {
        double seconds;
        Counters counters;
    };
    Since since_last(uint16_t queue, const Counters &now);

private:
    using Clock = std::chrono::steady_clock;
    struct Queue {
        const Mode *mode = nullptr;
        std::unique_ptr<Forwarder> forwarder;
        ForwardingLcore *worker = nullptr;
        Counters seen;          ///< at the last look
        Clock::time_point look; ///< when it was
    };

    std::string check_sizes() const;
    std::string check_channel(uint16_t queue) const;
    std::string check_channels();
    bool is_channel(uint16_t queue) const { return queue >= options_.queues; }
    Way way(uint16_t queue) const;
    bool connected();
    bool uses(std::unique_ptr<Forwarder> (*make)(const Way &, const Settings &)) const;
    void make_forwarders();
    void prime_queues();
    std::string launch();
    void links_lost();
    void look_at_events();
    void print_notes();
    void look_at_channels();
    std::string wait(double seconds, const std::function<bool()> &fact, const char *what);

    ntbmsg_endpoint *const endpoint_;
    const uint16_t device_;
    const Options &options_;
    const std::function<void()> on_period_;
    Settings settings_;
    FileWork files_;
    Ports ports_;
    Carrier carrier_;
    std::vector<std::unique_ptr<ForwardingLcore>> workers_;
    std::vector<Queue> queues_;
    bool running_ = false;
    std::string too_small_; ///< what check_channels() has found since the last start
    bool all_fit_ = false;  ///< or that there is nothing to find
    Clock::time_point next_stats_;
};

} // namespace echo

#endif
