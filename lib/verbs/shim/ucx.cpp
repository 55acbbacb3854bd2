// SPDX-License-Identifier: BSD-3-Clause
// UCX takes a device only if its node below /dev/infiniband is a character device that it may read
// and write. Ours has none, and what it would be asked for does not go through one: in UCX's own
// table of addresses the two calls that ask for that name, and only for it, find one.
#include "shim/ucx.hpp"

#include <cstdio>
#include <cstring>

#include <sys/stat.h>
#include <unistd.h>

#include "locked.hpp"
#include "shim/identity.hpp"
#include "shim/objects.hpp"
#include "shim/slots.hpp"

namespace ntb::verbs::shim
{
namespace
{

decltype(&::stat) genuine_stat;
decltype(&::access) genuine_access;

bool is_our_node(const char *path)
{
    constexpr char folder[] = "/dev/infiniband/";
    constexpr std::size_t n = sizeof(folder) - 1;
    return std::strncmp(path, folder, n) == 0 &&
           std::strcmp(path + n, our_device().device.dev_name) == 0;
}

int our_stat(const char *path, struct stat *status)
{
    if (!is_our_node(path))
        return genuine_stat(path, status);
    *status = {};
    status->st_mode = S_IFCHR | S_IRUSR | S_IWUSR;
    status->st_nlink = 1;
    return 0;
}

int our_access(const char *path, int mode)
{
    return is_our_node(path) && (mode & X_OK) == 0 ? 0 : genuine_access(path, mode);
}

} // namespace

void serve_ucx()
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static bool is_done = false;
    const Locked locked(mutex);
    if (is_done)
        return;
    const Slot slots[] = {
        {"stat", "stat64", reinterpret_cast<void *>(our_stat), &genuine_stat},
        {"access", nullptr, reinterpret_cast<void *>(our_access), &genuine_access},
    };
    const int outcome = replace("libuct_ib.so", slots, sizeof(slots) / sizeof(slots[0]));
    if (outcome < 0)
        fprintf(stderr, "ntbverbs: libuct_ib.so does not call what it should: UCX does not take "
                        "the device\n");
    is_done = outcome != 0;
}

} // namespace ntb::verbs::shim
