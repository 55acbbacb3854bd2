// SPDX-License-Identifier: BSD-3-Clause
// The connection manager's device below librdmacm, in that library's own table of addresses.
#include "shim/rdma_cm.hpp"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cm/device.hpp"
#include "locked.hpp"
#include "shim/daemon_error.hpp"
#include "shim/identity.hpp"
#include "shim/objects.hpp"
#include "shim/slots.hpp"

namespace ntb::verbs::shim
{
namespace
{

constexpr const char *device_path = "/dev/infiniband/rdma_cm";

decltype(&::open) genuine_open;
decltype(&::write) genuine_write;
decltype(&::close) genuine_close;
decltype(&::fstat) genuine_fstat;
decltype(&::ibv_open_device) genuine_open_device;

// Made with the first descriptor, and never ended: calls may come as late as the process ends.
pthread_mutex_t device_mutex = PTHREAD_MUTEX_INITIALIZER;
cm::Device *device;

cm::Device *find_device()
{
    const Locked locked(device_mutex);
    return device;
}

const char *map_path()
{
    return getenv("NTB_VERBS_HOSTS");
}

int make_device()
{
    const Locked locked(device_mutex);
    if (device)
        return 0;
    auto *hosts = new cm::Hosts(device_socket(), node_guid(&our_device().device), device_index);
    const std::string wrong = hosts->load(map_path());
    if (!wrong.empty()) {
        fprintf(stderr, "ntbverbs: %s\n", wrong.c_str());
        delete hosts;
        return -EINVAL;
    }
    auto *made = new cm::Device(*hosts);
    const int error = made->start(device_socket());
    if (error != 0) {
        fprintf(stderr, "ntbverbs: %s\n", daemon_error(device_socket(), -error).c_str());
        delete made;
        delete hosts;
        return error;
    }
    device = made;
    return 0;
}

template <typename T>
T answer(T result)
{
    if (result >= 0)
        return result;
    errno = static_cast<int>(-result);
    return -1;
}

// ---- what librdmacm calls

mode_t mode_of(int flags, va_list more)
{
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
}

int our_open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = mode_of(flags, more);
    va_end(more);
    if (std::strcmp(path, device_path) != 0)
        return genuine_open(path, flags, mode);
    const int error = make_device();
    return answer(error != 0 ? error : find_device()->open(flags));
}

// Keeps errno.
void name_the_map()
{
    static std::atomic<bool> was_named{false};
    const int error = errno;
    if (error != ENOENT && error != ENODEV && error != ENXIO)
        return;
    if (!was_named.exchange(true))
        fprintf(stderr, "ntbverbs: the kernel has no connection manager for librdmacm, and there "
                        "is no map of addresses: " NTB_VERBS_HOSTS " or ntb-verbs --hosts FILE\n");
    errno = error;
}

// Without a map librdmacm has the kernel's device, and does not say what else there could be.
int explained_open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = mode_of(flags, more);
    va_end(more);
    const int descriptor = genuine_open(path, flags, mode);
    if (descriptor < 0 && std::strcmp(path, device_path) == 0)
        name_the_map();
    return descriptor;
}

ssize_t our_write(int descriptor, const void *bytes, std::size_t size)
{
    cm::Device *const own = find_device();
    return own && own->owns(descriptor) ? answer(own->write(descriptor, bytes, size))
                                        : genuine_write(descriptor, bytes, size);
}

int our_close(int descriptor)
{
    cm::Device *const own = find_device();
    return own && own->owns(descriptor) ? answer(own->close(descriptor))
                                        : genuine_close(descriptor);
}

// It looks for a character device, with the numbers that the kernel has for it where there is one.
int our_fstat(int descriptor, struct stat *status)
{
    cm::Device *const own = find_device();
    const int done = genuine_fstat(descriptor, status);
    if (done != 0 || !own || !own->owns(descriptor))
        return done;
    struct stat node;
    status->st_rdev = ::stat(device_path, &node) == 0 ? node.st_rdev : 0;
    status->st_mode = S_IFCHR | S_IRUSR | S_IWUSR;
    return 0;
}

// Queue pairs of its ids belong to the device that it opens: that one's address is sent to peers.
ibv_context *our_open_device(ibv_device *wanted)
{
    ibv_context *const context = genuine_open_device(wanted);
    if (!context || wanted != &our_device().device)
        return context;
    cm::DevicePort port;
    port.lid = context_of(context)->lid;
    ibv_gid gid;
    fill_gid(context, gid);
    std::memcpy(port.gid, gid.raw, sizeof(port.gid));
    if (cm::Device *const own = find_device())
        own->set_device_port(port);
    return context;
}

template <typename Replacement, typename Original>
Slot slot_of(const char *name, const char *other_name, Replacement *replacement, Original *original)
{
    return {name, other_name, reinterpret_cast<void *>(replacement), original};
}

} // namespace

void serve_librdmacm()
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static bool is_done = false;
    const Locked locked(mutex);
    if (is_done)
        return;
    if (!map_path()) {
        const Slot slot = slot_of("open", "open64", explained_open, &genuine_open);
        is_done = replace("librdmacm.so.1", &slot, 1) != 0;
        return;
    }
    const Slot slots[] = {
        slot_of("open", "open64", our_open, &genuine_open),
        slot_of("write", nullptr, our_write, &genuine_write),
        slot_of("close", nullptr, our_close, &genuine_close),
        slot_of("fstat", "fstat64", our_fstat, &genuine_fstat),
        slot_of("ibv_open_device", nullptr, our_open_device, &genuine_open_device),
    };
    const int outcome = replace("librdmacm.so.1", slots, sizeof(slots) / sizeof(slots[0]));
    if (outcome < 0)
        fprintf(stderr, "ntbverbs: librdmacm.so.1 does not call what it should: no connection "
                        "manager\n");
    is_done = outcome != 0;
}

} // namespace ntb::verbs::shim

// Programs that are linked with librdmacm have it by now; for others the list of devices is asked
// for before it opens anything.
__attribute__((constructor)) static void begin()
{
    ntb::verbs::shim::serve_librdmacm();
}
