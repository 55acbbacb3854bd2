// SPDX-License-Identifier: BSD-3-Clause
#include "broker/memory.hpp"

#include "wire/sealed.hpp"

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

namespace ntbd
{

std::unique_ptr<Memory> Memory::create(uint32_t ring_bytes, int *fd)
{
    const int created = ntbc::sealed_create("ntbd-connection", ntbc::memory_bytes(ring_bytes));
    if (created < 0) {
        errno = -created;
        return nullptr;
    }
    auto memory = open(ring_bytes, created);
    if (memory == nullptr)
        close(created);
    else
        *fd = created;
    return memory;
}

std::unique_ptr<Memory> Memory::open(uint32_t ring_bytes, int fd)
{
    if (!ntbc::is_ring_size(ring_bytes) ||
        !ntbc::sealed_check(fd, ntbc::memory_bytes(ring_bytes))) {
        errno = EPROTO;
        return nullptr;
    }
    void *at = ntbc::sealed_map(fd, ntbc::memory_bytes(ring_bytes));
    if (at == nullptr)
        return nullptr;
    return std::unique_ptr<Memory>(new Memory(static_cast<ntbc::Page *>(at), ring_bytes));
}

Memory::~Memory()
{
    munmap(page_, bytes());
}

void Memory::release()
{
    madvise(reinterpret_cast<uint8_t *>(page_) + ntbc::page_bytes, bytes() - ntbc::page_bytes,
            MADV_REMOVE);
}

} // namespace ntbd
