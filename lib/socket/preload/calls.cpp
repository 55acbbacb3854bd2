// SPDX-License-Identifier: BSD-3-Clause
#include "preload/calls.hpp"

#include <cerrno>
#include <dlfcn.h>

namespace ntb::socket::preload
{

Real real_functions;
bool real_is_known = false;

namespace
{
// For a name that this libc does not have. A program finds ours, calls it, and gets ENOSYS.
long missing()
{
    errno = ENOSYS;
    return -1;
}

template <typename Function>
void find(Function *&pointer, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == nullptr)
        found = reinterpret_cast<void *>(missing);
    pointer = reinterpret_cast<Function *>(found);
}
} // namespace

void find_real()
{
    const int saved = errno;
#define NTB_FIND(result, name, parameters) find(real_functions.name, #name);
    NTB_COUNTED_CALLS(NTB_FIND)
    NTB_OTHER_CALLS(NTB_FIND)
#undef NTB_FIND
    real_is_known = true;
    errno = saved;
}

} // namespace ntb::socket::preload
