// SPDX-License-Identifier: BSD-3-Clause
// --stats-period: counters of all devices, printed by a thread of their own, so that the polling
// one is not held up.
#ifndef PKTGEN_RESULTS_PERIOD_HPP
#define PKTGEN_RESULTS_PERIOD_HPP

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ntbmsg.h>

namespace pktgen
{

class Period
{
public:
    /// @param seconds  0: does nothing; @param endpoints  of the devices; open until this has ended
    Period(double seconds, std::vector<std::string> devices,
           std::vector<const ntbmsg_endpoint *> endpoints);
    ~Period();
    Period(const Period &) = delete;
    Period &operator=(const Period &) = delete;

private:
    void run(double seconds);
    void print(double seconds);

    const std::vector<std::string> devices_;
    const std::vector<const ntbmsg_endpoint *> endpoints_;
    std::vector<ntbmsg_endpoint_stats> last_;
    std::mutex mutex_;
    std::condition_variable ended_;
    bool end_ = false;
    std::thread thread_;
};

} // namespace pktgen

#endif
