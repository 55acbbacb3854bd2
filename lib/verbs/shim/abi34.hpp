// SPDX-License-Identifier: BSD-3-Clause
// What libibverbs and a driver below it agree on, in private ABI 34 as rdma-core 41 to 56 have it.
// No header of a -dev package says it. What is public comes from infiniband/verbs.h.
#ifndef NTB_VERBS_SHIM_ABI34_HPP
#define NTB_VERBS_SHIM_ABI34_HPP

#include <cstddef>
#include <cstdint>

#include <infiniband/verbs.h>

namespace ntb::verbs::shim
{

constexpr int private_abi = 34;

/// Places in the table of a driver's functions, in the order of their names.
enum class Op : unsigned {
    AdviseMr,
    AllocDm,
    AllocMw,
    AllocNullMr,
    AllocParentDomain,
    AllocPd,
    AllocTd,
    AsyncEvent,
    AttachCountersPointFlow,
    AttachMcast,
    BindMw,
    CloseXrcd,
    CqEvent,
    CreateAh,
    CreateCounters,
    CreateCq,
    CreateCqEx,
    CreateFlow,
    CreateFlowActionEsp,
    CreateQp,
    CreateQpEx,
    CreateRwqIndTable,
    CreateSrq,
    CreateSrqEx,
    CreateWq,
    DeallocMw,
    DeallocPd,
    DeallocTd,
    DeregMr,
    DestroyAh,
    DestroyCounters,
    DestroyCq,
    DestroyFlow,
    DestroyFlowAction,
    DestroyQp,
    DestroyRwqIndTable,
    DestroySrq,
    DestroyWq,
    DetachMcast,
    FreeContext,
    FreeDm,
    GetSrqNum,
    ImportDm,
    ImportMr,
    ImportPd,
    ModifyCq,
    ModifyFlowActionEsp,
    ModifyQp,
    ModifyQpRateLimit,
    ModifySrq,
    ModifyWq,
    OpenQp,
    OpenXrcd,
    PollCq,
    PostRecv,
    PostSend,
    PostSrqOps,
    PostSrqRecv,
    QueryDeviceEx,
    QueryEce,
    QueryPort,
    QueryQp,
    QueryQpDataInOrder,
    QueryRtValues,
    QuerySrq,
    ReadCounters,
    RegDmMr,
    RegDmabufMr,
    RegMr,
    ReqNotifyCq,
    ReregMr,
    ResizeCq,
    SetEce,
    UnimportDm,
    UnimportMr,
    UnimportPd,
    Count,
};
static_assert(static_cast<unsigned>(Op::Count) == 76);

/// What is not set stays what the library has for it: refused with EOPNOTSUPP.
struct Ops {
    using Call = void (*)();
    Call calls[static_cast<unsigned>(Op::Count)] = {};

    template <typename Function>
    void set(Op op, Function *function)
    {
        calls[static_cast<unsigned>(op)] = reinterpret_cast<Call>(function);
    }
};

/// Of a driver, for the devices that it has found in sysfs, and for ours.
struct DeviceOps {
    const char *name;
    std::uint32_t min_abi, max_abi;
    const void *match_table;
    const void *static_providers;
    bool (*match_device)(void *sysfs);
    verbs_context *(*alloc_context)(ibv_device *device, int cmd_fd, void *private_data);
    verbs_context *(*import_context)(ibv_device *device, int cmd_fd);
    void *(*alloc_device)(void *sysfs);
    void (*uninit_device)(void *device);
};

struct Device {
    ibv_device device;
    const DeviceOps *ops;
    int references; ///< atomic to the library
    void *entry[2]; ///< of its list
    void *sysfs;    ///< NULL: there is none, and the library opens nothing
    std::uint64_t core_support;
};
static_assert(offsetof(Device, ops) == 664 && offsetof(Device, sysfs) == 696);

struct Region {
    ibv_mr mr;
    int type; ///< 0: of memory
    int access;
};

struct Srq {
    ibv_srq srq;
    int type;
    void *xrcd;
    ibv_cq *cq;
    std::uint32_t number;
};

struct Qp {
    union {
        ibv_qp qp;
        ibv_qp_ex extended;
    };
    std::uint32_t mask; ///< which of the extensions are there
    void *xrcd;
};
constexpr std::uint32_t qp_is_extended = 2; ///< in Qp::mask

struct Cq {
    union {
        ibv_cq cq;
        ibv_cq_ex extended;
    };
};

// The functions of the library that drivers call.
using InitContext = void *(ibv_device *device, int cmd_fd, std::size_t bytes,
                           verbs_context *context_at, std::uint32_t driver);
using SetOps = void(verbs_context *context, const Ops *ops);
using UninitContext = void(verbs_context *context);

} // namespace ntb::verbs::shim

#endif
