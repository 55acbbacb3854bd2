// SPDX-License-Identifier: BSD-3-Clause
// The device and its objects without queues.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "memory/pages.hpp"
#include "shim/daemon_error.hpp"
#include "shim/direct.hpp"
#include "shim/genuine.hpp"
#include "shim/identity.hpp"
#include "shim/objects.hpp"

namespace ntb::verbs::shim
{
namespace
{

constexpr std::uint32_t max_addresses = 65536;

// ---- what the device says of itself

int query_device(ibv_context *context, const ibv_query_device_ex_input *, ibv_device_attr_ex *attr,
                 std::size_t bytes)
{
    ibv_device_attr_ex all = {};
    ibv_device_attr &device = all.orig_attr;
    snprintf(device.fw_ver, sizeof(device.fw_ver), "%s", NTB_VERBS_VERSION);
    device.node_guid = device.sys_image_guid = node_guid(context->device);
    // Locally administered, as the number of the node that begins with it.
    device.vendor_id = 0x026e74;
    device.max_mr_size = ~std::uint64_t{0};
    device.page_size_cap = 0xfffff000;
    device.max_qp = NTBV_MAX_QP - 2;
    device.max_qp_wr = NTBV_MAX_WR;
    // Of the extensions: keys that end by requests. Fast registration is not for programs.
    device.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW |
                              IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
    device.max_sge = device.max_sge_rd = device.max_srq_sge = NTBV_MAX_SGE;
    device.max_cq = NTBV_MAX_CQ;
    device.max_cqe = NTBV_MAX_CQE;
    device.max_mr = device.max_mw = NTBV_MAX_MR;
    device.max_pd = NTBV_MAX_PD;
    device.max_ah = max_addresses;
    device.max_srq = NTBV_MAX_SRQ;
    device.max_qp_rd_atom = device.max_qp_init_rd_atom = NTBV_MAX_READS;
    device.max_res_rd_atom = NTBV_MAX_READS * (NTBV_MAX_QP - 2);
    // They are atomic to the CPU as well, but UCX takes those of IBV_ATOMIC_HCA alone.
    device.atomic_cap = IBV_ATOMIC_HCA;
    device.max_srq_wr = NTBV_MAX_WR;
    device.max_pkeys = 1;
    device.phys_port_cnt = 1;
    all.phys_port_cnt_ex = 1;
    memcpy(attr, &all, std::min(bytes, sizeof(all)));
    return 0;
}

int query_port(ibv_context *context, std::uint8_t port, ibv_port_attr *attr)
{
    if (port != 1)
        return EINVAL;
    attr->state = IBV_PORT_ACTIVE;
    attr->max_mtu = attr->active_mtu = IBV_MTU_4096;
    attr->gid_tbl_len = 1;
    attr->max_msg_sz = NTBV_MAX_MESSAGE;
    attr->pkey_tbl_len = 1;
    attr->lid = context_of(context)->lid;
    attr->sm_lid = 1;
    attr->max_vl_num = 1;
    attr->active_width = 2;  // four lanes
    attr->active_speed = 32; // of 25 Gbit/s
    attr->phys_state = 5;    // up
    attr->link_layer = IBV_LINK_LAYER_INFINIBAND;
    return 0;
}

// ---- objects

ibv_pd *alloc_pd(ibv_context *context)
{
    auto *domain = make<Domain>();
    if (!domain)
        return nullptr;
    const int error = ntbv_pd_create(context_of(context)->engine, &domain->own);
    return error != 0 ? fail(domain, error) : &domain->pd;
}

int dealloc_pd(ibv_pd *pd)
{
    const int error = ntbv_pd_destroy(own<Domain>(pd)->own);
    if (error == 0)
        free(pd);
    return -error;
}

constexpr int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
// What a device may ignore: hints about pages, and the range that is optional.
constexpr int hints = IBV_ACCESS_HUGETLB | static_cast<int>(IBV_ACCESS_OPTIONAL_RANGE);

/// Devices pin memory, and say so where there is none. A request into it would end this process.
bool is_there(const void *address, std::size_t bytes, int access)
{
    return is_accessible(address, bytes, (access & IBV_ACCESS_LOCAL_WRITE) != 0);
}

ibv_mr *reg_mr(ibv_pd *pd, void *address, std::size_t bytes, std::uint64_t iova, int access)
{
    auto *region = make<OwnRegion>();
    if (!region)
        return nullptr;
    if ((access & ~(rights | hints)) != 0)
        return fail(region, -EOPNOTSUPP);
    if (!is_there(address, bytes, access))
        return fail(region, -EFAULT);
    region->domain = own<Domain>(pd)->own;
    std::uint32_t key = 0;
    const int error = ntbv_mr_register(region->domain, address, bytes, iova,
                                       static_cast<unsigned>(access & rights), &key);
    if (error != 0)
        return fail(region, error);
    region->base.mr.lkey = region->base.mr.rkey = key;
    region->base.access = access;
    region->iova = iova;
    return &region->base.mr;
}

// The library sets what the program sees of it afterwards, and returns a code of its own: why is in
// errno.
int rereg_mr(Region *of_program, int flags, ibv_pd *pd, void *address, std::size_t bytes,
             int access)
{
    auto *const region = own<OwnRegion>(of_program);
    const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
    const int new_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 ? access : of_program->access;
    if ((new_access & ~(rights | hints)) != 0)
        return errno = EOPNOTSUPP;
    ntbv_pd *const domain =
        (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? own<Domain>(pd)->own : region->domain;
    const std::uint64_t iova = moves ? reinterpret_cast<std::uintptr_t>(address) : region->iova;
    void *const memory = moves ? address : of_program->mr.addr;
    const std::size_t length = moves ? bytes : of_program->mr.length;
    if (!is_there(memory, length, new_access))
        return errno = EFAULT;
    const int error = ntbv_mr_reregister(region->domain, of_program->mr.lkey, domain, memory,
                                         length, iova, static_cast<unsigned>(new_access & rights));
    if (error != 0)
        return errno = -error;
    region->domain = domain;
    region->iova = iova;
    of_program->access = new_access;
    return 0;
}

int dereg_mr(Region *region)
{
    const int error = ntbv_mr_deregister(own<OwnRegion>(region)->domain, region->mr.lkey);
    if (error == 0)
        free(region);
    return -error;
}

ibv_mw *alloc_mw(ibv_pd *pd, ibv_mw_type type)
{
    auto *window = make<OwnWindow>();
    if (!window)
        return nullptr;
    static_assert(int{IBV_MW_TYPE_1} == NTBV_MW_1 && int{IBV_MW_TYPE_2} == NTBV_MW_2);
    const int error = ntbv_mw_create(own<Domain>(pd)->own, static_cast<ntbv_mw_type>(type),
                                     &window->own, &window->mw.rkey);
    if (error != 0)
        return fail(window, error);
    window->mw.context = pd->context;
    window->mw.pd = pd;
    window->mw.type = type;
    return &window->mw;
}

int dealloc_mw(ibv_mw *mw)
{
    ntbv_mw_destroy(own<OwnWindow>(mw)->own);
    free(mw);
    return 0;
}

ibv_ah *create_ah(ibv_pd *pd, ibv_ah_attr *attr)
{
    auto *address = make<Address>();
    if (!address)
        return nullptr;
    if (attr->port_num != 1 || attr->dlid == 0)
        return fail(address, -EINVAL);
    std::uint32_t &addresses = context_of(pd->context)->addresses;
    if (__atomic_fetch_add(&addresses, 1, __ATOMIC_RELAXED) >= max_addresses) {
        __atomic_fetch_sub(&addresses, 1, __ATOMIC_RELAXED);
        return fail(address, -ENOMEM);
    }
    address->lid = attr->dlid;
    return &address->ah;
}

int destroy_ah(ibv_ah *ah)
{
    __atomic_fetch_sub(&context_of(ah->context)->addresses, 1, __ATOMIC_RELAXED);
    free(ah);
    return 0;
}

// ---- opening and closing

void free_context(ibv_context *context)
{
    Context *const own_context = context_of(context);
    forget_direct(own_context->engine);
    // A program may close a device before its objects: they stay what they are, and so does the
    // engine below them.
    ntbv_node_close(own_context->node);
    Genuine::get().uninit_context(&own_context->verbs);
    free(own_context);
}

} // namespace

verbs_context *open_context(ibv_device *device, int cmd_fd, void *)
{
    const Genuine &genuine = Genuine::get();
    ntbv_node *node = nullptr;
    const int error = ntbv_node_open(device_socket(), nullptr, nullptr, &node);
    if (error != 0) {
        fprintf(stderr, "ntbverbs: %s\n", daemon_error(device_socket(), -error).c_str());
        errno = -error;
        return nullptr;
    }
    static_assert(offsetof(Context, verbs) == 0);
    auto *context =
        static_cast<Context *>(genuine.init_context(device, cmd_fd, sizeof(Context), nullptr, 0));
    if (!context) {
        ntbv_node_close(node);
        return nullptr;
    }
    context->node = node;
    context->engine = ntbv_node_engine(node);
    context->lid = ntbv_node_lid(node);
    begin_direct(node);
    Ops ops;
    set_device_calls(ops);
    set_object_calls(ops);
    set_queue_calls(ops);
    set_data_calls(ops);
    set_event_calls(ops);
    genuine.set_ops(&context->verbs, &ops);
    // The library closes it.
    context->verbs.context.async_fd =
        fcntl(ntbv_engine_events(context->engine), F_DUPFD_CLOEXEC, 0);
    context->verbs.context.num_comp_vectors = 1;
    return &context->verbs;
}

void set_device_calls(Ops &ops)
{
    ops.set(Op::QueryDeviceEx, query_device);
    ops.set(Op::QueryPort, query_port);
    ops.set(Op::FreeContext, free_context);
}

void set_object_calls(Ops &ops)
{
    ops.set(Op::AllocPd, alloc_pd);
    ops.set(Op::DeallocPd, dealloc_pd);
    ops.set(Op::RegMr, reg_mr);
    ops.set(Op::ReregMr, rereg_mr);
    ops.set(Op::DeregMr, dereg_mr);
    ops.set(Op::AllocMw, alloc_mw);
    ops.set(Op::DeallocMw, dealloc_mw);
    ops.set(Op::CreateAh, create_ah);
    ops.set(Op::DestroyAh, destroy_ah);
}

} // namespace ntb::verbs::shim
