// SPDX-License-Identifier: BSD-3-Clause
#include "trap.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

namespace test
{

namespace
{

struct Slot {
    std::atomic<const std::byte *> base{nullptr}; ///< set last, cleared first
    TrappedRange range;
};
Slot slots[8];
thread_local uint64_t accesses = 0;

/// A `mov` of 32 bits between memory and a register, or of a constant to memory.
struct Move {
    bool is_store = false;
    bool is_constant = false;
    unsigned reg = 0;
    uint32_t constant = 0;
    size_t length = 0; ///< 0: something else
};

Move decode(const uint8_t *code)
{
    const uint8_t *at = code;
    const uint8_t rex = (*at & 0xF0) == 0x40 ? *at++ : 0;
    const uint8_t opcode = *at++;
    const uint8_t modrm = *at++;
    const unsigned mod = modrm >> 6, rm = modrm & 7;
    Move move{.is_store = opcode != 0x8B,
              .is_constant = opcode == 0xC7,
              .reg = (modrm >> 3 & 7u) | (rex & 4u) << 1};
    if ((opcode != 0x8B && opcode != 0x89 && opcode != 0xC7) || (rex & 8) != 0 || mod == 3)
        return {};
    // The address is what the signal has; only its length matters here.
    const bool has_sib = rm == 4;
    const unsigned base = has_sib ? *at++ & 7u : rm;
    if (mod == 1)
        at += 1;
    else if (mod == 2 || base == 5)
        at += 4;
    if (move.is_constant) {
        std::memcpy(&move.constant, at, sizeof(move.constant));
        at += sizeof(move.constant);
    }
    move.length = static_cast<size_t>(at - code);
    return move;
}

greg_t *general_register(ucontext_t *context, unsigned number)
{
    constexpr int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                             REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                             REG_R12, REG_R13, REG_R14, REG_R15};
    return &context->uc_mcontext.gregs[order[number]];
}

const TrappedRange *find(const std::byte *address)
{
    for (const Slot &slot : slots) {
        const std::byte *base = slot.base.load();
        if (base != nullptr && address >= base && address < base + slot.range.bytes)
            return &slot.range;
    }
    return nullptr;
}

[[noreturn]] void give_up(const char *why)
{
    // Nothing but a write is safe here.
    [[maybe_unused]] const ssize_t told = write(STDERR_FILENO, why, std::strlen(why));
    std::abort();
}

void on_fault(int, siginfo_t *info, void *raw)
{
    auto *context = static_cast<ucontext_t *>(raw);
    const int saved_errno = errno;
    const auto *address = static_cast<const std::byte *>(info->si_addr);
    const TrappedRange *range = find(address);
    if (range == nullptr)
        give_up("trap: a fault outside of every trapped range\n");
    greg_t &rip = context->uc_mcontext.gregs[REG_RIP];
    const Move move = decode(reinterpret_cast<const uint8_t *>(rip));
    if (move.length == 0)
        give_up("trap: a register was accessed by something else than a 32-bit mov\n");
    const auto offset = static_cast<uint64_t>(address - range->base);
    greg_t &reg = *general_register(context, move.reg);
    if (!move.is_store)
        reg = range->read32(range->ctx, offset); // the upper half becomes 0, as with any 32-bit mov
    else
        range->write32(range->ctx, offset,
                       move.is_constant ? move.constant : static_cast<uint32_t>(reg));
    rip += static_cast<greg_t>(move.length);
    ++accesses;
    errno = saved_errno;
}

} // namespace

void trap(const TrappedRange &range)
{
    struct sigaction action {
    };
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    for (Slot &slot : slots) {
        if (slot.base.load() != nullptr)
            continue;
        if (mprotect(range.base, range.bytes, PROT_NONE) != 0)
            give_up("trap: the pages cannot be protected\n");
        slot.range = range;
        slot.base.store(range.base);
        return;
    }
    give_up("trap: no room for another range\n");
}

void untrap(const std::byte *base)
{
    for (Slot &slot : slots)
        if (slot.base.load() == base)
            slot.base.store(nullptr);
}

uint64_t trapped_accesses_here()
{
    return accesses;
}

} // namespace test
