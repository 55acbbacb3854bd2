// SPDX-License-Identifier: BSD-3-Clause
// The works of one measurement at one end, one a queue, on as many lcores as there are: each queue
// has its own, or, where there are fewer, they share them in turn. The main lcore is one of them.
#ifndef PKTGEN_MEASURE_LCORES_HPP
#define PKTGEN_MEASURE_LCORES_HPP

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu_share.hpp"
#include "measure/work.hpp"

namespace pktgen
{

/// Lcores of this process that can drive queues, the main one among them.
unsigned lcores_here();

class Lcores
{
public:
    /// What all works together have come to, as far as is known on the main lcore.
    struct Progress {
        uint64_t received = 0; ///< messages, from the peer or back
        uint64_t completed = 0;
        int error = 0; ///< of the first that failed; a negative errno
        bool sending = false, sent_all = true;
    };

    /// @param steps     polls of a queue between two reads of the clock
    /// @param lcores    at most, from 1 on
    /// @param realtime  priority of the lcores but the main one
    Lcores(std::vector<std::unique_ptr<Work>> works, unsigned steps, unsigned lcores,
           bool realtime);
    /// Works that go on are ended.
    ~Lcores();
    Lcores(const Lcores &) = delete;
    Lcores &operator=(const Lcores &) = delete;

    /// Before they start: once a call. @return whether all are ready
    bool set_up();
    /// Lets them run. @param now  ticks of the TSC
    void start(uint64_t now);
    /// HOT. The main lcore's part. @param steps  at each of its queues
    void round(unsigned steps);
    void stop_sending();
    Progress progress() const;
    /// Only the caller touches works from then on.
    void end();

    /// Which part of their time these lcores had their CPUs: the least of them. Once they have
    /// ended.
    double cpu_share() const;

    unsigned lcores() const { return static_cast<unsigned>(members_.size()); }
    /// The CPU that drives a work.
    int cpu_of(size_t work) const;
    size_t size() const { return works_.size(); }
    const Work &operator[](size_t i) const { return *works_[i]; }

private:
    struct Member;

    static int run(void *member);

    std::vector<std::unique_ptr<Work>> works_;
    std::vector<std::unique_ptr<Member>> members_; ///< the main lcore first
    const unsigned steps_;
    const bool realtime_;
    bool running_ = false;
    app::CpuShare main_share_; ///< from the start on
};

} // namespace pktgen

#endif
