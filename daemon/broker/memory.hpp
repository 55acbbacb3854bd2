// SPDX-License-Identifier: BSD-3-Clause
// The memory of a connection, as a daemon has it.
#ifndef NTBD_BROKER_MEMORY_HPP
#define NTBD_BROKER_MEMORY_HPP

#include "ring/layout.hpp"

#include <cstdint>
#include <memory>

namespace ntbd
{

/// A mapping without a descriptor: a thousand connections do not take a thousand of them.
class Memory
{
public:
    /// New memory. @param fd its descriptor, the caller's @return NULL: there is none, errno set
    static std::unique_ptr<Memory> create(uint32_t ring_bytes, int *fd);
    /// Memory that another daemon sent. @return NULL: it is not what it should be
    static std::unique_ptr<Memory> open(uint32_t ring_bytes, int fd);
    ~Memory();
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;

    ntbc::Page &page() { return *page_; }
    uint32_t ring_bytes() const { return ring_bytes_; }
    size_t bytes() const { return ntbc::memory_bytes(ring_bytes_); }
    /// Gives the pages of the rings back, also those that a client still maps: it finds zeros. The
    /// first page stays: it says why.
    void release();

private:
    Memory(ntbc::Page *page, uint32_t ring_bytes) : page_(page), ring_bytes_(ring_bytes) {}

    ntbc::Page *page_;
    uint32_t ring_bytes_;
};

} // namespace ntbd

#endif
