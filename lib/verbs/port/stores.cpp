// SPDX-License-Identifier: BSD-3-Clause
#include "port/stores.hpp"

#include <cstdint>
#include <cstring>
#include <utility>

#include "copy_past.hpp"

namespace ntb::verbs
{

void Stores::copy(std::byte *to, const std::byte *from, std::size_t bytes)
{
    if (!can_copy_past || bytes < least) {
        std::memcpy(to, from, bytes);
        return;
    }
    const bool was_full = full_since_ != 0;
    const std::uint64_t begin = was_full ? std::exchange(full_since_, 0) : now();
    if (choice_.way() != 0) {
        copy_past(to, from, bytes);
        loose_ = true;
    } else {
        std::memcpy(to, from, bytes);
    }
    took(bytes, now() - begin, was_full);
}

void Stores::settle()
{
    if (loose_)
        settle_past();
    loose_ = false;
}

void Stores::took(std::uint64_t bytes, std::uint64_t cycles, bool was_full)
{
    stored_ += bytes;
    if (stored_ <= lap_)
        return;
    counted_ += bytes;
    cycles_ += cycles;
    was_full_ = was_full_ || was_full;
    if (stored_ >= laps * lap_)
        end_stretch();
}

// One division in some laps.
void Stores::end_stretch()
{
    const std::uint64_t factor = choice_.way() != 0 && !was_full_ ? unseen : 1;
    constexpr std::uint64_t line = 64;
    choice_.took(TimedChoice::block_units,
                 factor * cycles_ * (TimedChoice::block_units * line) / counted_);
    stored_ = counted_ = cycles_ = 0;
    was_full_ = false;
}

std::uint64_t Stores::now()
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 1;
#endif
}

} // namespace ntb::verbs
