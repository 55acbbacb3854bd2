// SPDX-License-Identifier: BSD-3-Clause
// What claims are kept as.
#ifndef NTBD_BROKER_CLAIM_PARTS_HPP
#define NTBD_BROKER_CLAIM_PARTS_HPP

#include "broker/bells.hpp"
#include "broker/claims.hpp"

#include "record/record.hpp"
#include "wire/sealed.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace ntbd
{

using ntb::socket::Record;
using ntb::socket::record_bytes;

struct Fd {
    int fd = -1;
    Fd() = default;
    Fd(const Fd &) = delete;
    Fd &operator=(const Fd &) = delete;
    ~Fd()
    {
        if (fd >= 0)
            ::close(fd);
    }
};

class RecordMemory
{
public:
    /// @param fd its descriptor, the caller's @return NULL: no memory or no descriptor
    static std::unique_ptr<RecordMemory> create(Fd *fd)
    {
        fd->fd = ntbc::sealed_create("ntbd-record", record_bytes);
        if (fd->fd < 0)
            return nullptr;
        void *at = ntbc::sealed_map(fd->fd, record_bytes);
        return at != nullptr ? std::unique_ptr<RecordMemory>(new RecordMemory(at)) : nullptr;
    }
    ~RecordMemory() { munmap(at_, record_bytes); }
    RecordMemory(const RecordMemory &) = delete;
    RecordMemory &operator=(const RecordMemory &) = delete;
    Record &record() { return *static_cast<Record *>(at_); }

private:
    explicit RecordMemory(void *at) : at_(at) {}
    void *at_;
};

inline ntb::socket::Page &page_of(Memory &memory)
{
    return reinterpret_cast<ntb::socket::Page &>(memory.page());
}

inline uint64_t charge_of(uint32_t ring_bytes)
{
    return ntbc::memory_bytes(ring_bytes) + record_bytes;
}

struct Claims::Claim {
    uint64_t id;
    Owner owner; ///< client 0: it is gone
    uint64_t token;
    uint64_t cookie;
    std::string tuple;
    uint32_t index;      ///< 0 connected, 1 accepted
    int64_t deadline_ms; ///< for a mirror
    uint64_t charged;
    bool numbers_agree; ///< of processes: the client has the one for itself that its daemon has
    std::shared_ptr<Memory> memory = nullptr; ///< NULL: waits for its mirror
    std::unique_ptr<RecordMemory> record = nullptr;
    Descriptor bell{}; ///< of this end: rings the other one
    uint64_t pair = 0;
    uint64_t remote = 0;
    bool remote_gone = false; ///< closed there
    bool made_here = false;
    bool carried = false;     ///< through the daemons, each of which has memory of its own
    bool relay_ended = false; ///< and that has ended
    int64_t again_ms = 0;     ///< when to say the end again
    uint32_t again_generation = 0;
    uint64_t progress = 0; ///< when it was last looked at
    int rests = 0;         ///< times that it rested since it moved bytes
    bool asked = false;    ///< to go back, when it was last looked at
};

struct Claims::Offer {
    uint64_t id;
    std::string tuple;
    User user;
};

} // namespace ntbd

#endif
