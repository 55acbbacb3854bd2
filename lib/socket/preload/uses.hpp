// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_PRELOAD_USES_HPP
#define NTB_SOCKET_PRELOAD_USES_HPP

#include "table/table.hpp"

#include <cstdint>

namespace ntb::socket::preload
{

/// What calls of this thread have in use while they sleep, or while the kernel does their work: as
/// the kernel's calls have their file, whatever becomes of the number. A handler may leave such a
/// call for good, by longjmp() or the end of the thread, so the uses do not lie in its frame. The
/// last one kept is the first to go. By this thread alone, and its handlers.
class Uses
{
public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    /// The caller's use becomes one that sleeps, and this thread's: who closes need not wait for
    /// it.
    /// @return its place, or none: there is no room, and the use stays the caller's
    static std::uint32_t keep(Object &object);
    /// The last one that was kept is the caller's again. @retval false a longjmp() has left some
    /// call of this thread meanwhile, and nothing is kept any more
    static bool take_back(std::uint32_t place);
    static bool keeps(std::uint32_t place);
    /// Ends that use, and those behind it. none: nothing
    static void let_go(std::uint32_t place);
    /// Whether a call of this thread keeps it: then this is a handler.
    static bool has(const Object &object);
    /// In the child of a fork, whose table knows of no use.
    static void forked();
};

} // namespace ntb::socket::preload

#endif
