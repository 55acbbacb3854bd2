// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_RECORD_FAMILY_HPP
#define NTB_SOCKET_RECORD_FAMILY_HPP

#include <atomic>
#include <cstdint>

#include "record/record.hpp"

namespace ntb::socket
{

/// Who has a connection that no daemon knows of yet, and that was there at a fork or at an exec:
/// memory that a process shares with its children and with the program that it goes on as, and they
/// with theirs (doc/socket-protocol.md, section 8). Any process of them, any thread.
class Family
{
public:
    static constexpr int most = 4096; ///< connections at a time

    /// The memory's file. @return a descriptor that exec closes, or -1: there is none
    static int create();
    /// Whether a descriptor is of a file that create() made, in this process or another.
    static bool is_file(int fd);
    /// @param fd  as create() made it, in this process or another; stays the caller's
    /// @retval false it is something else, or there is no memory
    bool map(int fd);
    /// As map(), of a descriptor that is closed where that fails.
    bool adopt(int fd);
    bool is_there() const { return places_ != nullptr; }

    /// A connection, as the next program has to know it.
    struct Socket {
        std::uint64_t cookie;
        bool accepted;
    };
    /// A place with this process as its holder; one whose holders are all dead is taken again.
    /// @return -1: there is none
    int take(std::int32_t pid, const Socket &socket);
    /// What has this place. Once its list is empty and none is expected, another connection may
    /// have it.
    /// @param place  any number. @return a cookie of 0: nothing has it
    Socket socket_at(int place) const;
    Holders &at(int place) { return places_[place].holders; }
    /// The process takes itself off; the last one gives the place back.
    void leave(int place, std::int32_t pid);

private:
    struct Place {
        std::atomic<std::uint32_t> turn; ///< changes by 4 with each use; below that what it is
        Socket socket;
        Holders holders;
    };

    Place *places_ = nullptr;
    std::uint32_t next_ = 0; ///< where it is looked first, in this process
};

} // namespace ntb::socket

#endif
