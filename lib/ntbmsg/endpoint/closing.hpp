// SPDX-License-Identifier: BSD-3-Clause
// The orderly end of an endpoint's channels, before its device is stopped.
#ifndef NTBMSG_ENDPOINT_CLOSING_HPP
#define NTBMSG_ENDPOINT_CLOSING_HPP

#include "endpoint/endpoint.hpp"

namespace ntbmsg
{

/// Drives the workers until the peer's applications have confirmed all messages of channels, at
/// most @p linger_ms. Ends early when the peer is lost or closes, too, or a signal handler runs.
/// No other thread drives them. @return milliseconds left
uint32_t settle(Endpoint &e, uint32_t linger_ms);
/// Messages of channels that were not confirmed.
uint64_t unconfirmed_on_channels(const Endpoint &e);

} // namespace ntbmsg

#endif
