// SPDX-License-Identifier: BSD-3-Clause
#include "signals.hpp"

#include <csignal>

namespace app
{

namespace
{

volatile std::sig_atomic_t caught = 0;

void on_signal(int number)
{
    caught = number;
}

} // namespace

void catch_signals()
{
    struct sigaction action = {};
    action.sa_handler = on_signal;
    // One shot, and no SA_RESTART: a blocked read of standard input has to return.
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    // A reader of our output that has left must not take the clean end with it.
    signal(SIGPIPE, SIG_IGN);
}

int stop_signal()
{
    return caught;
}

} // namespace app
