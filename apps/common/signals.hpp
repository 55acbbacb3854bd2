// SPDX-License-Identifier: BSD-3-Clause
// SIGINT and SIGTERM as a flag that polling loops look at.
#ifndef APP_SIGNALS_HPP
#define APP_SIGNALS_HPP

namespace app
{

/// From here on a first SIGINT or SIGTERM asks for a clean end; a second one ends the program as
/// it would have without us. System calls that block return EINTR; after the first signal sleeps
/// and polls of the calling thread do so every 10 ms (SIGALRM), so that none misses it.
void catch_signals();

/// Ends these interruptions, for a wait that is short and should not be cut.
void stop_interrupting();

/// The signal that asked for an end, 0 as long as none did.
int stop_signal();

/// What is under way may come to a clean end after a stop signal, as far as it does so without
/// delay. @return whether a signal has come and the time for that has passed
bool stop_is_overdue();

} // namespace app

#endif
