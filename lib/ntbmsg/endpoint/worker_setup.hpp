// SPDX-License-Identifier: BSD-3-Clause
// Creation and end of workers.
#ifndef NTBMSG_ENDPOINT_WORKER_SETUP_HPP
#define NTBMSG_ENDPOINT_WORKER_SETUP_HPP

#include "transport/worker.hpp"

namespace ntbmsg
{

/// The device's configuration as far as workers need it.
struct Sizes {
    uint32_t inline_max;
    uint32_t buf_bytes;
    uint32_t max_message;
    uint32_t buffers; ///< receive buffers that one worker may grant
    int socket;
};

/// Initializes a worker in zeroed memory. @return 0, or -ENOMEM with the reason logged
int init_worker(Worker &w, Endpoint &e, uint16_t index, const Sizes &sizes);
/// Ends all channels and frees what they hold; the device is stopped. May be called again.
void end_worker(Worker &w);
/// Frees pools and channels.
void free_worker(Worker &w);
/// mbufs of its pools that the application still holds, after end_worker().
unsigned held_mbufs(const Worker &w);

} // namespace ntbmsg

#endif
