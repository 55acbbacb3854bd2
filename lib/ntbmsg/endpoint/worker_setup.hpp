// SPDX-License-Identifier: BSD-3-Clause
// What a worker has from open to close.
#ifndef NTBMSG_ENDPOINT_WORKER_SETUP_HPP
#define NTBMSG_ENDPOINT_WORKER_SETUP_HPP

#include "port/worker.hpp"

namespace ntbmsg
{

/// What a device is configured as, as far as channels count with it.
struct Sizes {
    uint32_t inline_max;
    uint32_t buf_bytes;
    uint32_t max_message;
    uint32_t buffers; ///< that one worker may promise
    int socket;
};

/// Pools and channels of a worker in zeroed memory. @return 0 or -ENOMEM with the reason logged
int init_worker(Worker &w, Endpoint &e, uint16_t index, const Sizes &sizes);
/// Ends all channels and frees what they hold; the device is stopped. Can be called again.
void end_worker(Worker &w);
/// Frees pools and channels.
void free_worker(Worker &w);
/// mbufs of its pools that are still out, when it has ended.
unsigned held_mbufs(const Worker &w);

} // namespace ntbmsg

#endif
