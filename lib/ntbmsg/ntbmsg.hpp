// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTBMSG_HPP
#define NTBMSG_HPP

/// @file
/// ntbmsg.h for C++20: owners that move and close themselves, spans for bursts. Everything is
/// inline and calls the C function of the same name, whose documentation applies. No exception is
/// thrown and no type information needed: a call that can fail returns 0 or a negative errno, a
/// burst how many messages it took. A call costs what the C call costs; the test zero-cost compares
/// them instruction by instruction.
///
/// An owner is empty at first; open(), connect() and the like fill it, and what it had before is
/// closed only when they succeed. Using an empty owner is like using NULL in C. Owners have to be
/// destroyed before what they stand on: messages and channels before their endpoint.
///
/// One-sided operations (ntbmsg_rma.hpp) and the event descriptors of workers are experimental:
/// they are there if ALLOW_EXPERIMENTAL_API is defined.

#include <ntbmsg_channel.hpp>
#include <ntbmsg_endpoint.hpp>
#ifdef ALLOW_EXPERIMENTAL_API
#include <ntbmsg_rma.hpp>
#endif

#endif
