// SPDX-License-Identifier: BSD-3-Clause
// Memory regions of this host, and the workers that access them.
#ifndef NTBMSG_RMA_REGION_HPP
#define NTBMSG_RMA_REGION_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <pthread.h>

#include "ntbmsg.h"
#include "wire/one_sided.hpp"

namespace ntbmsg
{
class Regions;
}

/// A slot of the endpoint's table. Slots are reused and not freed before the endpoint is closed, so
/// that a worker may read any slot at any time.
struct ntbmsg_region {
    std::atomic<uint64_t> key;   ///< 0: none, or being revoked
    std::atomic<uint32_t> users; ///< workers that access it now
    uint32_t rights;
    std::byte *address;
    uint64_t bytes;
    size_t window_bytes; ///< of memory that the library allocated; 0: the caller's memory
    bool direct;         ///< the peer's stores reach it while connected
    bool in_use;
    ntbmsg::Regions *table;
    std::atomic<uint64_t> writes;
    std::atomic<uint64_t> reads;
    std::atomic<uint64_t> atomics;
    std::atomic<uint64_t> refused;
};

namespace ntbmsg
{

/// The regions of an endpoint, in zeroed memory. The control path takes a lock; serving the peer's
/// operations does not.
class Regions
{
public:
    static constexpr uint32_t slots_max = 4096;

    int init(uint16_t dev_id); ///< @return 0 or negative errno
    /// Revokes the remaining regions; the device is stopped.
    void destroy();

    int alloc(size_t bytes, uint32_t rights, ntbmsg_region **out);
    int add(void *address, size_t bytes, uint32_t rights, ntbmsg_region **out);
    int revoke(ntbmsg_region &region);
    int token(const ntbmsg_region &region, protocol::Token &out);

    /// Begins an access to the region with @p key, which must end with leave().
    /// @return NULL: no such region
    ntbmsg_region *enter(uint64_t key);
    static void leave(ntbmsg_region &region)
    {
        region.users.fetch_sub(1, std::memory_order_release); // pairs with revoke()
    }

    /// Calls @p fn for each region in use, with the lock held. For telemetry and dumps.
    void visit(void (*fn)(const ntbmsg_region &region, void *arg), void *arg) const;

private:
    int make_slots();
    ntbmsg_region *take_slot();
    int publish(ntbmsg_region &region);
    int revoke_memory(ntbmsg_region &region);
    int expose(const ntbmsg_region &region, uint64_t &window);

    mutable pthread_mutex_t lock_;
    std::atomic<ntbmsg_region *> slots_; ///< slots_max of them, allocated for the first region
    uint32_t store_rights_;
    uint32_t next_slot_; ///< where the next search begins
    uint16_t dev_id_;
    bool ready_;
};

} // namespace ntbmsg

#endif
