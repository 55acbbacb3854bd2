// SPDX-License-Identifier: BSD-3-Clause
// Register accesses of a driver that believes in a BAR: its pages may not be accessed, so each
// access is a SIGSEGV, whose handler takes the instruction apart, does what it asks for by a
// function, and steps over it. A driver's 32-bit loads and stores are two forms of `mov` (and a
// third for a constant); anything else ends the test. (Not by a file with no byte behind it: SIGBUS
// is EAL's while it takes huge pages.)
#ifndef TEST_PCI_TRAP_HPP
#define TEST_PCI_TRAP_HPP

#include <cstddef>
#include <cstdint>

namespace test
{

struct TrappedRange {
    std::byte *base = nullptr; ///< whole pages
    size_t bytes = 0;
    uint32_t (*read32)(void *ctx, uint64_t offset) = nullptr;
    void (*write32)(void *ctx, uint64_t offset, uint32_t value) = nullptr;
    void *ctx = nullptr;
};

/// Accesses from any thread are answered on that thread; they are the thread's own doing, not
/// asynchronous, so the functions may do what the driver's caller could. At most 8 ranges.
void trap(const TrappedRange &range);
/// Undoes trap(). Nothing may access it any more.
void untrap(const std::byte *base);
/// How many accesses of the calling thread were answered.
uint64_t trapped_accesses_here();

} // namespace test

#endif
