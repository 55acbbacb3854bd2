// SPDX-License-Identifier: BSD-3-Clause
#include "host/error.hpp"

#include "twin.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <sys/resource.h>

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

int fail_for_descriptors(Error *error, const char *cable)
{
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return fail(error, -EMFILE,
                "the cable %s needs up to %u more file descriptors, and one more a block of "
                "memory: this process may have %llu (ulimit -n)",
                cable, descriptors_needed, static_cast<unsigned long long>(limit.rlim_cur));
}

} // namespace plx::twin
