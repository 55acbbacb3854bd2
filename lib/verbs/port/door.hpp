// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_PORT_DOOR_HPP
#define NTB_VERBS_PORT_DOOR_HPP

#include <cstdint>

#include <sys/types.h>

namespace ntb::verbs
{

/// By which processes of this machine find a door. Zero: there is none. It is no secret: who knows
/// it can bring something, and does not get anything.
struct DoorName {
    std::uint64_t half[2];
};

/// Where a process takes descriptors from peers on its machine: a listening socket, at which each
/// leaves a connection with one message in it. Nobody has to wait for anybody. One thread at a
/// time.
class Door
{
public:
    Door() = default;
    ~Door();
    Door(const Door &) = delete;
    Door &operator=(const Door &) = delete;

    /// @return 0 or a negative errno
    int open();
    DoorName name() const { return name_; }
    /// What a process of that user has brought under that number: a descriptor, the caller's from
    /// now on; -1: nothing. What others bring is kept for a while: the last 16.
    int take(std::uint64_t number, uid_t user);

private:
    struct Brought {
        std::uint64_t number;
        uid_t user;
        int descriptor;
    };
    static constexpr std::uint32_t most_kept = 16;

    void look();
    /// @retval false there is nothing in it yet
    bool hear(int guest);

    int socket_ = -1;
    DoorName name_ = {};
    Brought kept_[most_kept] = {};
    std::uint32_t n_kept_ = 0;
    int guests_[most_kept] = {}; // who are about to bring something
    std::uint32_t n_guests_ = 0;
};

/// Brings a descriptor, which stays the caller's, to a door of that user.
/// @retval false there is no such door on this machine, or it is another user's, or it is full
bool bring(const DoorName &door, uid_t user, std::uint64_t number, int descriptor);

} // namespace ntb::verbs

#endif
