// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTBMSG_HPP
#define NTBMSG_HPP

/// @file
/// ntbmsg.h for C++20: objects that own their handles, and spans for bursts. Everything is inline
/// and calls the C function of the same name, whose documentation applies (but for
/// Channel::abort() and Region::revoke(), since reset() and release() are what an owner does with
/// its handle). No exceptions and no run-time type information are used: a call that can fail
/// returns 0 or a negative errno, a burst call the number of messages. A call costs as much as the
/// C call; the test zero-cost compares them instruction by instruction.
///
/// An object is empty at first; open(), connect() and the like fill it, and close an earlier handle
/// only if they succeed. Using an empty object is like using NULL in C. Objects must be destroyed
/// before those they depend on: messages and channels before their endpoint.
///
/// One-sided operations (ntbmsg_rma.hpp) and the event descriptors of workers are experimental:
/// they are available if ALLOW_EXPERIMENTAL_API is defined.

#include <ntbmsg_channel.hpp>
#include <ntbmsg_endpoint.hpp>
#ifdef ALLOW_EXPERIMENTAL_API
#include <ntbmsg_rma.hpp>
#endif

#endif
