// SPDX-License-Identifier: BSD-3-Clause
#include "measure/lcores.hpp"

#include <algorithm>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "realtime.hpp"

namespace pktgen
{

/// An lcore and its works. What it has come to is published for the main lcore after each round.
struct alignas(64) Lcores::Member {
    unsigned lcore = 0, steps = 1;
    bool realtime = false;
    std::vector<Work *> works;
    alignas(64) std::atomic<bool> stop{false}; ///< nothing new is sent
    std::atomic<bool> quit{false};
    alignas(64) std::atomic<uint64_t> received{0};
    std::atomic<uint64_t> completed{0};
    std::atomic<int> error{0};
    std::atomic<bool> sending{true}, sent_all{false};
    bool stopped = false;
    double cpu_share = 1; ///< once it has ended

    void round(unsigned steps_now)
    {
        if (!stopped && stop.load(std::memory_order_relaxed)) {
            stopped = true;
            for (Work *work : works)
                work->stop_sending();
        }
        if (works.size() == 1)
            works[0]->slice(steps_now);
        else
            in_turn(steps_now);
        const uint64_t now = rte_rdtsc();
        for (Work *work : works)
            work->look(now);
        publish();
    }

private:
    /// Polls each once, again and again: none waits for the others for longer.
    void in_turn(unsigned steps_now)
    {
        for (unsigned step = 0; step < steps_now; ++step) {
            for (Work *work : works)
                work->slice(1);
        }
    }

    void publish()
    {
        uint64_t came = 0, done = 0;
        int failed = 0;
        bool sends = false, all = true;
        for (const Work *work : works) {
            came += work->received_messages();
            done += work->completed_messages();
            failed = failed == 0 ? work->error() : failed;
            sends = sends || (work->error() == 0 && work->sending());
            all = all && (work->error() != 0 || work->sent_all());
        }
        received.store(came, std::memory_order_relaxed);
        completed.store(done, std::memory_order_relaxed);
        error.store(failed, std::memory_order_relaxed);
        sending.store(sends, std::memory_order_relaxed);
        sent_all.store(all, std::memory_order_release); // what was sent may be read then
    }
};

unsigned lcores_here()
{
    return rte_lcore_count();
}

Lcores::Lcores(std::vector<std::unique_ptr<Work>> works, unsigned steps, unsigned lcores,
               bool realtime)
    : works_(std::move(works)), steps_(std::max(1U, steps)), realtime_(realtime)
{
    const size_t wanted = std::clamp<size_t>(works_.size(), 1, std::min(lcores, lcores_here()));
    unsigned lcore = rte_get_main_lcore();
    while (members_.size() < wanted) {
        members_.push_back(std::make_unique<Member>());
        members_.back()->lcore = lcore;
        // Workers are gone through from the first one on; the main lcore is none of them.
        lcore = rte_get_next_lcore(members_.size() == 1 ? UINT32_MAX : lcore, 1, 0);
    }
    for (size_t i = 0; i < works_.size(); ++i)
        members_[i % wanted]->works.push_back(works_[i].get());
}

Lcores::~Lcores()
{
    end();
}

bool Lcores::set_up()
{
    bool ready = true;
    for (const auto &work : works_)
        ready = work->set_up() && ready;
    return ready;
}

void Lcores::start(uint64_t now)
{
    for (const auto &work : works_)
        work->start(now);
    for (const auto &member : members_) {
        member->realtime = realtime_;
        member->steps = std::max<unsigned>(1, steps_ / static_cast<unsigned>(member->works.size()));
    }
    running_ = true;
    main_share_ = {};
    for (size_t i = 1; i < members_.size(); ++i)
        rte_eal_remote_launch(run, members_[i].get(), members_[i]->lcore);
}

int Lcores::run(void *of)
{
    auto &member = *static_cast<Member *>(of);
    const app::Realtime realtime(member.realtime);
    const app::CpuShare share;
    while (!member.quit.load(std::memory_order_relaxed))
        member.round(member.steps);
    member.cpu_share = share.taken(); // seen by who waits for this lcore
    return 0;
}

void Lcores::round(unsigned steps)
{
    members_[0]->round(std::min(steps, members_[0]->steps));
}

void Lcores::stop_sending()
{
    for (const auto &member : members_)
        member->stop.store(true, std::memory_order_relaxed);
}

Lcores::Progress Lcores::progress() const
{
    Progress all;
    for (const auto &member : members_) {
        all.received += member->received.load(std::memory_order_relaxed);
        all.completed += member->completed.load(std::memory_order_relaxed);
        all.sending = all.sending || member->sending.load(std::memory_order_relaxed);
        all.sent_all = all.sent_all && member->sent_all.load(std::memory_order_acquire);
        if (all.error == 0)
            all.error = member->error.load(std::memory_order_relaxed);
    }
    return all;
}

void Lcores::end()
{
    if (running_)
        members_[0]->cpu_share = main_share_.taken();
    for (size_t i = 1; running_ && i < members_.size(); ++i) {
        members_[i]->quit.store(true, std::memory_order_relaxed);
        rte_eal_wait_lcore(members_[i]->lcore);
    }
    running_ = false;
}

double Lcores::cpu_share() const
{
    double least = 1;
    for (const auto &member : members_)
        least = std::min(least, member->cpu_share);
    return least;
}

int Lcores::cpu_of(size_t work) const
{
    return rte_lcore_to_cpu_id(static_cast<int>(members_[work % members_.size()]->lcore));
}

} // namespace pktgen
