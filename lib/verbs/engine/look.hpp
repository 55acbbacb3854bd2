// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_ENGINE_LOOK_HPP
#define NTB_VERBS_ENGINE_LOOK_HPP

#include <cstdint>

#include "engine/engine.hpp"
#include "spin.hpp"

namespace ntb::verbs
{

/// Drives an engine that had nothing to do until it has, while its program does not poll and the
/// spin lasts (decision 034).
/// @param is_called  asks the kernel, now and then, whether something else is to be done
/// @retval false  there was nothing: sleep
template <typename IsCalled>
bool look(Engine &engine, const Spinning &spinning, Spin &spin, IsCalled is_called)
{
    for (std::uint32_t lap = 1; spin.lap(); ++lap) {
        {
            const Visit visit(engine.lock());
            if (engine.drive() != 0)
                return true;
            if (engine.is_polled())
                return false;
        }
        if (lap % spinning.kernel_every == 0 && is_called())
            return false;
    }
    return false;
}

} // namespace ntb::verbs

#endif
