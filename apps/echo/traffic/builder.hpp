// SPDX-License-Identifier: BSD-3-Clause
// Sends what waits in an outbox by building it anew in receive buffers of the peer.
#ifndef ECHO_TRAFFIC_BUILDER_HPP
#define ECHO_TRAFFIC_BUILDER_HPP

#include "built_bursts.hpp"
#include "traffic/outbox.hpp"

namespace echo
{

/// Of one queue or channel.
class Builder
{
public:
    /// As Outbox::flush(). What cannot be built goes as the mbuf it is, in its turn: a message of
    /// no bytes, and one that wants more rooms than the peer has at present.
    int flush(Outbox &box, const Way &way, Counters &counters);

private:
    static int copy(Outbox &box, const Way &way, Counters &counters, uint16_t n);

    app::BuiltBursts bursts_;
};

} // namespace echo

#endif
