// SPDX-License-Identifier: BSD-3-Clause
#include "harness/lcore.hpp"

#include <rte_launch.h>

namespace echo
{

bool ForwardingLcore::launch()
{
    stop_.store(false, std::memory_order_relaxed);
    const auto entry = [](void *worker) {
        static_cast<ForwardingLcore *>(worker)->run();
        return 0;
    };
    running_ = rte_eal_remote_launch(entry, this, lcore_) == 0;
    return running_;
}

void ForwardingLcore::run()
{
    while (!stop_.load(std::memory_order_relaxed)) {
        for (Pollable *pollable : pollables_)
            pollable->poll();
        if (const auto *function = call_.load(std::memory_order_acquire); function != nullptr) {
            (*function)();
            call_.store(nullptr, std::memory_order_release);
            call_.notify_one();
        }
    }
}

void ForwardingLcore::stop()
{
    if (!running_)
        return;
    stop_.store(true, std::memory_order_relaxed);
    rte_eal_wait_lcore(lcore_);
    running_ = false;
}

void ForwardingLcore::call(const std::function<void()> &function)
{
    if (!running_) {
        function();
        return;
    }
    call_.store(&function, std::memory_order_release);
    call_.wait(&function, std::memory_order_acquire); // until it is not this one any more
}

} // namespace echo
