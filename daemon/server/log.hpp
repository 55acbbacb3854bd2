// SPDX-License-Identifier: BSD-3-Clause
// Lines on standard error, which systemd keeps.
#ifndef NTBD_SERVER_LOG_HPP
#define NTBD_SERVER_LOG_HPP

#include <cstdio>

namespace ntbd
{

template <typename... Args>
void log(const char *format, Args... args)
{
    char line[512];
    if constexpr (sizeof...(args) == 0)
        snprintf(line, sizeof(line), "%s", format);
    else
        snprintf(line, sizeof(line), format, args...);
    fprintf(stderr, "ntbd: %s\n", line);
}

} // namespace ntbd

#endif
