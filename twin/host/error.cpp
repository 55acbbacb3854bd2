// SPDX-License-Identifier: BSD-3-Clause
#include "host/error.hpp"

#include "twin.hpp"

#include <cstdarg>
#include <cstdio>

namespace plx::twin
{

int fail(Error *error, int code, const char *format, ...)
{
    if (error == nullptr)
        return code;
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return code;
}

} // namespace plx::twin
