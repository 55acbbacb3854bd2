// SPDX-License-Identifier: BSD-3-Clause
// The program: an interface of the kernel on a port, from start to a signal.
#ifndef APP_NET_BRIDGE_HPP
#define APP_NET_BRIDGE_HPP

#include <cstdint>
#include <string>

namespace net
{

struct Options {
    bool help = false;
    bool version = false;
    bool no_offloads = false;
    std::string interface = "ntb0";
    std::string port;
    uint64_t mtu = 1500;
    uint64_t queues = 1;
    uint64_t idle_us = 10;
};

/// @return empty, or one line that says what is wrong
std::string parse(int argc, char **argv, Options &options);
std::string help_text();

/// SIGINT and SIGTERM end bridge(); to be called before EAL makes threads.
void hold_signals();

/// @return exit status
int bridge(const Options &options);

} // namespace net

#endif
