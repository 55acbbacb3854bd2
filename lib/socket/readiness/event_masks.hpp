// SPDX-License-Identifier: BSD-3-Clause
// Events as epoll and poll name them: those that reading waits for, those that writing does, and
// those that are reported unasked.
#ifndef NTB_SOCKET_READINESS_EVENT_MASKS_HPP
#define NTB_SOCKET_READINESS_EVENT_MASKS_HPP

#include <cstdint>

#include <sys/epoll.h>

namespace ntb::socket
{

constexpr std::uint32_t always = EPOLLERR | EPOLLHUP;
constexpr std::uint32_t in_events = EPOLLIN | EPOLLRDHUP | EPOLLPRI | EPOLLRDNORM | EPOLLRDBAND;
constexpr std::uint32_t out_events = EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND;

} // namespace ntb::socket

#endif
