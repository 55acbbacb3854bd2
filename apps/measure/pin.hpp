// SPDX-License-Identifier: BSD-3-Clause
#ifndef APP_PIN_HPP
#define APP_PIN_HPP

namespace app
{

/// Keeps the calling thread, and those it starts later, on one CPU.
/// @return false: errno says why
bool pin(unsigned cpu);

} // namespace app

#endif
