// SPDX-License-Identifier: BSD-3-Clause
#include "preload/uses.hpp"

#include "preload/calls.hpp"
#include "preload/state.hpp"

#include <algorithm>
#include <csetjmp>
#include <pthread.h>

namespace ntb::socket::preload
{

namespace
{
constexpr std::uint32_t most = 128; // of a poll(), and of handlers within handlers

struct Kept {
    std::atomic<std::uint32_t> count;
    bool is_ended_with_thread;
    Object *objects[most];
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Kept kept{};

pthread_key_t ends;
bool has_ends;

__attribute__((constructor(101))) void make_key()
{
    has_ends = pthread_key_create(&ends, [](void *) { Uses::let_go(0); }) == 0;
}

std::uint32_t count()
{
    return kept.count.load(std::memory_order_relaxed);
}

void set_count(std::uint32_t now)
{
    std::atomic_signal_fence(std::memory_order_seq_cst);
    kept.count.store(now, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
}
} // namespace

std::uint32_t Uses::keep(Object &object)
{
    const std::uint32_t place = count();
    if (place == most)
        return none;
    if (!kept.is_ended_with_thread) [[unlikely]] {
        kept.is_ended_with_thread = true;
        if (has_ends)
            pthread_setspecific(ends, &kept);
    }
    Table::sleep(object);
    kept.objects[place] = &object;
    set_count(place + 1);
    return place;
}

bool Uses::keeps(std::uint32_t place)
{
    return place < count();
}

bool Uses::take_back(std::uint32_t place)
{
    if (!keeps(place))
        return false;
    // Before a handler may have its place.
    Object *const object = kept.objects[place];
    set_count(place);
    Table::wake(*object);
    return true;
}

void Uses::let_go(std::uint32_t place)
{
    while (keeps(place)) {
        const std::uint32_t last = count() - 1;
        Object *const object = kept.objects[last];
        take_back(last);
        state.table.done(object);
    }
}

bool Uses::has(const Object &object)
{
    return std::find(kept.objects, kept.objects + count(), &object) != kept.objects + count();
}

void Uses::forked()
{
    for (std::uint32_t i = 0; i < count(); i++) {
        Table::touch(*kept.objects[i]);
        Table::sleep(*kept.objects[i]);
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
