// SPDX-License-Identifier: BSD-3-Clause
// An lcore that forwards: round after round over its queues, until it is stopped.
#ifndef ECHO_HARNESS_LCORE_HPP
#define ECHO_HARNESS_LCORE_HPP

#include <atomic>
#include <functional>
#include <vector>

#include "traffic/forwarder.hpp"

namespace echo
{

/// Driven by the main lcore. The forwarders are touched by the lcore alone while it runs: others
/// read them through call(), which has the lcore run a function between two rounds.
class ForwardingLcore
{
public:
    explicit ForwardingLcore(unsigned lcore) : lcore_(lcore) {}
    ~ForwardingLcore() { stop(); }
    ForwardingLcore(const ForwardingLcore &) = delete;
    ForwardingLcore &operator=(const ForwardingLcore &) = delete;

    unsigned lcore() const { return lcore_; }

    // Only while it does not run.
    void add(Pollable *pollable) { pollables_.push_back(pollable); }
    void clear() { pollables_.clear(); }
    bool empty() const { return pollables_.empty(); }

    /// @return false: EAL did not launch it
    bool launch();
    void stop();

    /// Has @p function called between two rounds, and waits for it. Here and now while the lcore
    /// does not run.
    void call(const std::function<void()> &function);

private:
    void run();

    const unsigned lcore_;
    bool running_ = false; ///< the main lcore's
    std::vector<Pollable *> pollables_;
    std::atomic<bool> stop_{false};
    /// Set by the main lcore (release), taken and reset by the worker (acquire, release).
    std::atomic<const std::function<void()> *> call_{nullptr};
};

} // namespace echo

#endif
