// SPDX-License-Identifier: BSD-3-Clause
#include "record/family.hpp"

#include <new>

#include "kernel/memory.hpp"

namespace ntb::socket
{

namespace
{
// What a place's turn says, modulo 4.
constexpr std::uint32_t unused = 0, made = 1, used = 2;
constexpr int most_asked = 256;
} // namespace

bool Family::make()
{
    if (places_ != nullptr)
        return true;
    // Pages come as they are touched.
    places_ = kernel::map<Place>(most, MAP_SHARED | MAP_NORESERVE);
    return places_ != nullptr;
}

int Family::take(std::int32_t pid)
{
    // Those of the dead are looked for only where no place is free, and not everywhere: each is
    // asked for.
    for (const bool asks : {false, true}) {
        for (int i = 0; i < (asks ? most_asked : most); i++) {
            const int place = static_cast<int>((next_ + static_cast<std::uint32_t>(i)) % most);
            Place &one = places_[place];
            std::uint32_t turn = one.turn.load();
            if (turn % 4 != unused && !(asks && turn % 4 == used && one.holders.is_alone(0, true)))
                continue;
            if (!one.turn.compare_exchange_strong(turn, turn - turn % 4 + 4 + made))
                continue;
            new (&one.holders) Holders;
            one.holders.add(pid);
            one.turn.fetch_add(used - made);
            next_ = static_cast<std::uint32_t>(place) + 1;
            return place;
        }
        next_ += asks ? most_asked : 0;
    }
    return -1;
}

void Family::leave(int place, std::int32_t pid)
{
    Place &one = places_[place];
    // With others there, the place may be another connection's once this process is off.
    if (one.holders.is_alone(pid, true))
        one.turn.fetch_sub(used - unused);
    else
        one.holders.remove(pid);
}

} // namespace ntb::socket
