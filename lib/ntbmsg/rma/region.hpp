// SPDX-License-Identifier: BSD-3-Clause
// Memory of this host that the peer may reach, and who is inside it.
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

/// A slot of the endpoint's table; used again, never freed before the endpoint is closed, so that a
/// worker may look at any slot at any time.
struct ntbmsg_region {
    std::atomic<uint64_t> key;   ///< 0: none, or being revoked
    std::atomic<uint32_t> users; ///< workers inside an access
    uint32_t rights;
    std::byte *address;
    uint64_t bytes;
    size_t window_bytes; ///< of memory that the library allocated; 0: the caller's
    bool direct;         ///< the peer's stores reach it while a peer is there
    bool in_use;
    ntbmsg::Regions *table;
    std::atomic<uint64_t> writes;
    std::atomic<uint64_t> reads;
    std::atomic<uint64_t> atomics;
    std::atomic<uint64_t> refused;
};

namespace ntbmsg
{

/// The regions of an endpoint. Lives in zeroed memory; one lock for the control path, none where
/// the peer's operations are served.
class Regions
{
public:
    static constexpr uint32_t slots_max = 4096;

    int init(uint16_t dev_id); ///< @return 0 or negative errno
    /// Revokes what is left; the device is stopped.
    void destroy();

    int alloc(size_t bytes, uint32_t rights, ntbmsg_region **out);
    int add(void *address, size_t bytes, uint32_t rights, ntbmsg_region **out);
    int revoke(ntbmsg_region &region);
    int token(const ntbmsg_region &region, protocol::Token &out);

    /// Enters the region with @p key for an access, which has to end with leave().
    /// @return NULL: there is none
    ntbmsg_region *enter(uint64_t key);
    static void leave(ntbmsg_region &region)
    {
        region.users.fetch_sub(1, std::memory_order_release); // pairs with revoke()
    }

    /// How many there are, and each in use. For telemetry and dumps; the lock is held meanwhile.
    void visit(void (*fn)(const ntbmsg_region &region, void *arg), void *arg) const;

private:
    int make_slots();
    ntbmsg_region *take_slot();
    int publish(ntbmsg_region &region);
    int revoke_memory(ntbmsg_region &region);
    int expose(const ntbmsg_region &region, uint64_t &window);

    mutable pthread_mutex_t lock_;
    std::atomic<ntbmsg_region *> slots_; ///< slots_max of them once there was a region
    uint32_t store_rights_;
    uint32_t next_slot_; ///< to be looked at for the next region
    uint16_t dev_id_;
    bool ready_;
};

} // namespace ntbmsg

#endif
