// SPDX-License-Identifier: BSD-3-Clause
// Our device and another one in a program, started by ntb-verbs. The other one is a driver's of
// libibverbs, which it finds as it finds an adapter: in a sysfs (SYSFS_PATH) that the test has
// made, by a character device of the kernel. So our list stands on libibverbs' own, with its counts
// of references. What the library asks the kernel for is answered below. Silent if all is right.
// Or open() below would be open64() by name.
#undef _FILE_OFFSET_BITS
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <endian.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/abi34.hpp"

using namespace ntb::verbs::shim;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #condition, errno);              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

extern "C" {
InitContext _verbs_init_and_alloc_context;
SetOps verbs_set_ops;
UninitContext verbs_uninit_context;
void verbs_register_driver_34(const DeviceOps *ops);
}

// ---- what the kernel would have

namespace
{

// Takes no command: a write fails with ENOSPC, and an ioctl with ENOTTY.
const char *behind(const char *path)
{
    return strcmp(path, "/dev/infiniband/uverbs-beside") == 0 ? "/dev/full" : path;
}

} // namespace

#define PUBLIC extern "C" __attribute__((visibility("default")))

PUBLIC int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    return openat(AT_FDCWD, behind(path), flags, mode);
}

PUBLIC int stat(const char *path, struct stat *status) noexcept
{
    return fstatat(AT_FDCWD, behind(path), status, 0);
}

// A kernel with RDMA names its devices by netlink, and the library looks into sysfs for no more.
PUBLIC int socket(int domain, int type, int protocol) noexcept
{
    constexpr int netlink_rdma = 20;
    if (domain == AF_NETLINK && protocol == netlink_rdma) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    return static_cast<int>(syscall(SYS_socket, domain, type, protocol));
}

// ---- the driver of the other device

namespace
{

constexpr std::uint32_t other_vendor = 0xbe51de;
constexpr std::uint16_t other_lid = 0xbe5;
int domains, queues, regions, contexts;

int query_device(ibv_context *, const ibv_query_device_ex_input *, ibv_device_attr_ex *attr,
                 std::size_t bytes)
{
    memset(attr, 0, bytes);
    attr->orig_attr.vendor_id = other_vendor;
    attr->orig_attr.phys_port_cnt = 1;
    return 0;
}
int query_port(ibv_context *, std::uint8_t, ibv_port_attr *attr)
{
    attr->state = IBV_PORT_DOWN;
    attr->lid = other_lid;
    return 0;
}
ibv_pd *alloc_pd(ibv_context *)
{
    ++domains;
    return static_cast<ibv_pd *>(calloc(1, sizeof(ibv_pd)));
}
int dealloc_pd(ibv_pd *pd)
{
    --domains;
    free(pd);
    return 0;
}
ibv_cq *create_cq(ibv_context *, int cqe, ibv_comp_channel *, int)
{
    ++queues;
    auto *cq = static_cast<ibv_cq *>(calloc(1, sizeof(Cq)));
    cq->cqe = cqe;
    return cq;
}
int destroy_cq(ibv_cq *cq)
{
    --queues;
    free(cq);
    return 0;
}
ibv_mr *reg_mr(ibv_pd *, void *, std::size_t, std::uint64_t, int)
{
    ++regions;
    return static_cast<ibv_mr *>(calloc(1, sizeof(Region)));
}
int dereg_mr(Region *region)
{
    --regions;
    free(region);
    return 0;
}
void free_context(ibv_context *context)
{
    --contexts;
    auto *whole = reinterpret_cast<verbs_context *>(reinterpret_cast<char *>(context) -
                                                    offsetof(verbs_context, context));
    verbs_uninit_context(whole);
    free(whole);
}

verbs_context *alloc_context(ibv_device *device, int cmd_fd, void *)
{
    auto *context = static_cast<verbs_context *>(
        _verbs_init_and_alloc_context(device, cmd_fd, sizeof(verbs_context), nullptr, 0));
    CHECK(context);
    Ops ops;
    ops.set(Op::QueryDeviceEx, query_device);
    ops.set(Op::QueryPort, query_port);
    ops.set(Op::AllocPd, alloc_pd);
    ops.set(Op::DeallocPd, dealloc_pd);
    ops.set(Op::CreateCq, create_cq);
    ops.set(Op::DestroyCq, destroy_cq);
    ops.set(Op::RegMr, reg_mr);
    ops.set(Op::DeregMr, dereg_mr);
    ops.set(Op::FreeContext, free_context);
    verbs_set_ops(context, &ops);
    context->context.async_fd = open("/dev/null", O_RDWR | O_CLOEXEC); // else the kernel is asked
    ++contexts;
    return context;
}

const DeviceOps driver = {
    .name = "beside",
    .min_abi = 0,
    .max_abi = INT_MAX,
    .match_table = nullptr,
    .static_providers = nullptr,
    .match_device = [](void *) { return true; },
    .alloc_context = alloc_context,
    .import_context = nullptr,
    .alloc_device = [](void *) { return calloc(1, sizeof(Device)); },
    .uninit_device = [](void *device) { free(device); },
};

// ---- the program

ibv_device **both()
{
    int n = 0;
    ibv_device **list = ibv_get_device_list(&n);
    CHECK(list && n == 2 && !list[2]);
    CHECK(strcmp(ibv_get_device_name(list[0]), "beside0") == 0);
    CHECK(strcmp(ibv_get_device_name(list[1]), "ntb0") == 0);
    return list;
}

int references(ibv_device *device)
{
    return reinterpret_cast<Device *>(device)->references;
}

struct Opened {
    ibv_context *context = nullptr;
    ibv_pd *pd = nullptr;
    ibv_cq *cq = nullptr;
    ibv_mr *mr = nullptr;
    char memory[64] = {};

    explicit Opened(ibv_device *device)
    {
        context = ibv_open_device(device);
        CHECK(context && context->device == device);
        pd = ibv_alloc_pd(context);
        cq = ibv_create_cq(context, 4, nullptr, nullptr, 0);
        CHECK(pd && pd->context == context && cq && cq->context == context);
        mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
        CHECK(mr && mr->pd == pd);
    }
    void close()
    {
        CHECK(ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0);
        CHECK(ibv_close_device(context) == 0);
    }
};

void ask_other(ibv_context *context)
{
    ibv_device_attr device;
    ibv_port_attr port;
    CHECK(ibv_query_device(context, &device) == 0 && device.vendor_id == other_vendor);
    CHECK(ibv_query_port(context, 1, &port) == 0 && port.lid == other_lid &&
          port.state == IBV_PORT_DOWN);
    // Of its sysfs, by functions that are interposed.
    CHECK(be64toh(ibv_get_device_guid(context->device)) == 0x1122334455667788);
    ibv_gid gid;
    CHECK(ibv_query_gid(context, 1, 0, &gid) == 0 && gid.raw[0] == 0xfd && gid.raw[15] == 0x42);
    __be16 key = 0;
    CHECK(ibv_query_pkey(context, 1, 1, &key) == 0 && be16toh(key) == 0x8123);
    CHECK(ibv_get_pkey_index(context, 1, htobe16(0x8123)) == 1);
    // Asks its descriptor.
    errno = 0;
    CHECK(!ibv_create_comp_channel(context) && errno == ENOSPC);
}

void ask_ours(ibv_context *context)
{
    ibv_device_attr device;
    ibv_port_attr port;
    CHECK(ibv_query_device(context, &device) == 0 && device.vendor_id == 0x026e74);
    CHECK(ibv_query_port(context, 1, &port) == 0 && port.lid != other_lid &&
          port.state == IBV_PORT_ACTIVE);
    CHECK(be64toh(ibv_get_device_guid(context->device)) >> 32 == 0x026e7462);
    ibv_gid gid;
    CHECK(ibv_query_gid(context, 1, 0, &gid) == 0 && gid.raw[0] == 0xfe);
    __be16 key = 0;
    CHECK(ibv_query_pkey(context, 1, 0, &key) == 0 && be16toh(key) == 0xffff);
    CHECK(ibv_get_pkey_index(context, 1, htobe16(0x8123)) == -1);
    ibv_comp_channel *channel = ibv_create_comp_channel(context);
    CHECK(channel && ibv_destroy_comp_channel(channel) == 0);
}

void expect_other(int number)
{
    CHECK(domains == number && queues == number && regions == number && contexts == number);
}

} // namespace

int main()
{
    verbs_register_driver_34(&driver);
    ibv_device **const list = both();
    ibv_device *const other = list[0];
    ibv_device *const ours = list[1];
    const int before[] = {references(other), references(ours)};

    // The same devices once more, for as long as each list is held.
    ibv_device **const again = both();
    CHECK(again[0] == other && again[1] == ours);
    CHECK(references(other) == before[0] + 1 && references(ours) == before[1] + 1);
    ibv_free_device_list(again);
    CHECK(references(other) == before[0] && references(ours) == before[1]);
    ibv_device **const uncounted = ibv_get_device_list(nullptr);
    CHECK(uncounted && uncounted[0] == other && uncounted[1] == ours && !uncounted[2]);
    ibv_free_device_list(uncounted);
    CHECK(ibv_get_device_index(ours) > 0 &&
          ibv_get_device_index(ours) != ibv_get_device_index(other));

    // Both at a time, beyond the list, each by its own functions.
    Opened our_side(ours);
    expect_other(0);
    Opened other_side(other);
    expect_other(1);
    ibv_free_device_list(list);
    ask_other(other_side.context);
    ask_ours(our_side.context);

    // The other one goes on without ours, can be opened once more, and the other way round.
    our_side.close();
    expect_other(1);
    ask_other(other_side.context);
    ibv_device **const later = both();
    CHECK(later[0] == other && later[1] == ours);
    Opened second(other);
    expect_other(2);
    Opened ours_again(ours);
    ibv_free_device_list(later);
    ask_other(second.context);
    second.close();
    other_side.close();
    expect_other(0);
    ask_ours(ours_again.context);
    ours_again.close();
    // What the library itself keeps.
    ibv_device **const last = both();
    CHECK(references(other) == before[0] && references(ours) == before[1]);
    ibv_free_device_list(last);
    return 0;
}
