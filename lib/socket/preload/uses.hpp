// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_PRELOAD_USES_HPP
#define NTB_SOCKET_PRELOAD_USES_HPP

#include "table/table.hpp"

#include <cstdint>

namespace ntb::socket::preload
{

/// What calls of this thread have in use while they sleep, or while the kernel does their work: as
/// the kernel's calls have their file, whatever becomes of the number. A handler may leave such a
/// call for good by longjmp(), so the uses do not lie in its frame. The last one kept is the first
/// to go. By this thread alone, and its handlers.
class Uses
{
public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    /// The caller has it in use; from now on this keeps it, asleep: who closes it need not wait.
    /// @return its place, or none: there is no room, and nothing is kept
    static std::uint32_t keep(Object &object);
    /// false: a longjmp() has left some call of this thread meanwhile, and nothing is kept any
    /// more: the number may stand for something else.
    static bool keeps(std::uint32_t place);
    /// Lets that one go, and those behind it. none: nothing
    static void let_go(std::uint32_t place);
};

/// One use, for as long as this lives.
class Asleep
{
public:
    explicit Asleep(Object &object) : place_(Uses::keep(object)) {}
    ~Asleep() { Uses::let_go(place_); }
    Asleep(const Asleep &) = delete;
    Asleep &operator=(const Asleep &) = delete;
    bool is_kept() const { return Uses::keeps(place_); }

private:
    std::uint32_t place_;
};

} // namespace ntb::socket::preload

#endif
