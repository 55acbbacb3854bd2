// SPDX-License-Identifier: BSD-3-Clause
#include "record/family.hpp"

#include <initializer_list>
#include <new>

#include "kernel/memory.hpp"
#include "kernel/system.hpp"

#include <fcntl.h>
#include <sys/stat.h>

namespace ntb::socket
{

namespace
{
// What a place's turn says, modulo 4.
constexpr std::uint32_t unused = 0, made = 1, used = 2;
constexpr int most_asked = 256;
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
} // namespace

int Family::create()
{
    const long fd =
        kernel::call(SYS_memfd_create, "ntbsocket-family", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    // Pages come as they are touched.
    if (kernel::call(SYS_ftruncate, fd, most * sizeof(Place)) == 0 &&
        kernel::call(SYS_fcntl, fd, F_ADD_SEALS, seals) == 0)
        return static_cast<int>(fd);
    kernel::call(SYS_close, fd);
    return -1;
}

bool Family::is_file(int fd)
{
    struct stat file = {};
    const long has = fd < 0 ? -1 : kernel::call(SYS_fcntl, fd, F_GET_SEALS, 0);
    return has >= 0 && (has & seals) == seals && fstat(fd, &file) == 0 &&
           static_cast<std::size_t>(file.st_size) == most * sizeof(Place);
}

bool Family::map(int fd)
{
    if (!is_file(fd))
        return false;
    places_ = kernel::map<Place>(most, MAP_SHARED | MAP_NORESERVE, fd);
    return places_ != nullptr;
}

bool Family::adopt(int fd)
{
    if (map(fd))
        return true;
    kernel::call(SYS_close, fd);
    return false;
}

int Family::take(std::int32_t pid, const Socket &socket)
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
            one.socket = socket;
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

Family::Socket Family::socket_at(int place) const
{
    if (place < 0 || place >= most || places_[place].turn.load() % 4 != used)
        return {};
    return places_[place].socket;
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
