// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_RECORD_FAMILY_HPP
#define NTB_SOCKET_RECORD_FAMILY_HPP

#include <atomic>
#include <cstdint>

#include "record/record.hpp"

namespace ntb::socket
{

/// Who has a connection that no daemon knows of yet, and that was there at a fork: memory that a
/// process shares with its children, and they with theirs (doc/socket-protocol.md, section 8).
/// Any process of them, any thread.
class Family
{
public:
    static constexpr int most = 4096; ///< connections at a time

    /// Before the first fork with a connection. Again, it does nothing. @retval false no memory
    bool make();
    /// A place with this process as its holder; one whose holders are all dead is taken again.
    /// @return -1: there is none
    int take(std::int32_t pid);
    Holders &at(int place) { return places_[place].holders; }
    /// The process takes itself off; the last one gives the place back.
    void leave(int place, std::int32_t pid);

private:
    struct Place {
        std::atomic<std::uint32_t> turn; ///< changes by 4 with each use; below that what it is
        Holders holders;
    };

    Place *places_ = nullptr;
    std::uint32_t next_ = 0; ///< where it is looked first, in this process
};

} // namespace ntb::socket

#endif
