// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_ENGINE_SERVICE_HPP
#define NTB_VERBS_ENGINE_SERVICE_HPP

#include "wire/address.hpp"

namespace ntb::verbs
{

/// Who finds peers, and drives the engine while its program does not. Called under the engine's
/// lock: neither call waits.
class Service
{
public:
    virtual ~Service() = default;
    /// Somebody wants to reach that peer. To be answered by attach() or unreachable(), later.
    virtual void seek(Address peer) = 0;
    /// Ends a sleep that began with Engine::rest(). Any thread may call it, with or without the
    /// lock.
    virtual void wake() = 0;
};

} // namespace ntb::verbs

#endif
