// SPDX-License-Identifier: BSD-3-Clause
#include "preload/uses.hpp"

#include "preload/calls.hpp"
#include "preload/state.hpp"

#include <csetjmp>

namespace ntb::socket::preload
{

namespace
{
constexpr std::uint32_t most = 128; // of a poll(), and of handlers within handlers

struct Kept {
    std::atomic<std::uint32_t> count;
    Object *objects[most];
};
[[gnu::tls_model("initial-exec")]] thread_local Kept kept;
} // namespace

std::uint32_t Uses::keep(Object &object)
{
    const std::uint32_t place = kept.count.load(std::memory_order_relaxed);
    if (place == most)
        return none;
    Table::sleep(object);
    kept.objects[place] = &object;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    kept.count.store(place + 1, std::memory_order_relaxed);
    return place;
}

bool Uses::keeps(std::uint32_t place)
{
    return place < kept.count.load(std::memory_order_relaxed);
}

void Uses::let_go(std::uint32_t place)
{
    while (keeps(place)) {
        const std::uint32_t last = kept.count.load(std::memory_order_relaxed) - 1;
        kept.count.store(last, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        state.table.woken(kept.objects[last]);
    }
}

namespace
{
// Whether it leaves a call that sleeps, or stays inside of a handler, is not known: then the call
// goes on without what it had kept.
template <typename Jump>
[[noreturn]] void jump(Jump kernel, jmp_buf to, int value)
{
    {
        KeepErrno keep;
        Uses::let_go(0);
    }
    kernel(to, value);
    __builtin_unreachable();
}
} // namespace

NTB_EXPORT(void, longjmp, jmp_buf to, int value)
{
    jump(real().longjmp, to, value);
}

NTB_EXPORT(void, _longjmp, jmp_buf to, int value)
{
    jump(real()._longjmp, to, value);
}

NTB_EXPORT(void, siglongjmp, jmp_buf to, int value)
{
    jump(real().siglongjmp, to, value);
}

NTB_EXPORT(void, __longjmp_chk, jmp_buf to, int value)
{
    jump(real().__longjmp_chk, to, value);
}

} // namespace ntb::socket::preload
