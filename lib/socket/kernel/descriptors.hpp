// SPDX-License-Identifier: BSD-3-Clause
// Where the descriptors are that the library opens for itself in a program.
#ifndef NTB_SOCKET_KERNEL_DESCRIPTORS_HPP
#define NTB_SOCKET_KERNEL_DESCRIPTORS_HPP

namespace ntb::socket::kernel
{

/// Moves a descriptor to where programs do not expect what they open themselves: from 960 on, or
/// from the middle of what the limit allows. Not higher, because at each fork the kernel copies a
/// table up to the highest number that is open. Any thread, and signal handlers.
/// @param fd  taken over; -1 is none
/// @return its new number, closed by exec; -1: there is none. Where no more than a sixteenth of
///         what the limit allows is left above it, the program is about to need that, and none is
///         taken
int out_of_the_way(int fd);
/// A copy at such a place, which exec leaves open. @return -1: there is none
int copy_for_exec(int fd);

} // namespace ntb::socket::kernel

#endif
