// SPDX-License-Identifier: BSD-3-Clause
// The objects that the program has pointers to, each with that of the engine behind it.
#ifndef NTB_VERBS_SHIM_OBJECTS_HPP
#define NTB_VERBS_SHIM_OBJECTS_HPP

#include <cstdlib>
#include <new>
#include <type_traits>

#include "ntbv.h"
#include "shim/abi34.hpp"

namespace ntb::verbs::shim
{

// Allocated and freed by the library.
struct Context {
    verbs_context verbs;
    ntbv_node *node;
    ntbv_engine *engine;
    std::uint16_t lid;
    std::uint32_t addresses; ///< address handles
};
struct Domain {
    ibv_pd pd;
    ntbv_pd *own;
};
struct OwnRegion {
    Region base;
    ntbv_pd *domain;
    std::uint64_t iova;
};
struct OwnWindow {
    ibv_mw mw;
    ntbv_mw *own;
};
struct Address {
    ibv_ah ah;
    std::uint16_t lid;
};
struct Channel {
    ibv_comp_channel channel;
    ntbv_channel *own;
};
struct OwnCq {
    Cq base;
    ntbv_cq *own;
    std::uint32_t reported; ///< completion events that the program has read; under the mutex
    std::uint32_t reported_async;
    ntbv_wc current; ///< that the functions of an extended queue read
};
struct OwnSrq {
    Srq base;
    ntbv_srq *own;
    std::uint32_t max_wr, max_sge;
    std::uint32_t reported_async;
};
struct Batch;
struct OwnQp {
    Qp base;
    ntbv_qp *own;
    Batch *batch; ///< of extended posting; or NULL
    ibv_qp_cap cap;
    int signal_all;
    std::uint32_t reported_async;
};

// Every struct begins with what the program sees.
template <typename Own, typename Public>
Own *own(Public *object)
{
    static_assert(std::is_standard_layout_v<Own>);
    return reinterpret_cast<Own *>(object);
}
inline Context *context_of(ibv_context *context)
{
    return reinterpret_cast<Context *>(reinterpret_cast<char *>(context) -
                                       offsetof(verbs_context, context));
}

/// All zero, as libibverbs has it. NULL and errno: no memory.
template <typename Own>
Own *make()
{
    static_assert(std::is_trivially_destructible_v<Own>);
    return static_cast<Own *>(calloc(1, sizeof(Own)));
}

/// For functions that return a pointer: frees the object, and sets errno of a negative one.
template <typename Own>
std::nullptr_t fail(Own *object, int error)
{
    free(object);
    errno = -error;
    return nullptr;
}

/// What a program wants of a window, as the engine has it. Region and window are ours.
inline ntbv_bind binding_of(ibv_mw *mw, std::uint32_t key, const ibv_mw_bind_info &info)
{
    return {own<OwnWindow>(mw)->own, key, info.mr ? info.mr->lkey : 0, info.addr, info.length,
            info.mw_access_flags};
}

/// Removes an object's records from the pipe of its events, which has none of it from now on.
void forget_events(int descriptor, std::uint32_t record_bytes, const void *object);

// Groups of functions.
void set_device_calls(Ops &ops);
void set_object_calls(Ops &ops);
void set_queue_calls(Ops &ops);
void set_data_calls(Ops &ops);
/// Of a completion queue that is read field by field.
void set_extended_calls(ibv_cq_ex &cq);
/// Whether a queue pair of that type has these operations of extended posting.
bool can_post_extended(ibv_qp_type type, std::uint64_t operations);
/// Gives a new queue pair the functions of extended posting. @retval false no memory
bool make_extended(OwnQp &qp);
void free_batch(Batch *batch);
void set_event_calls(Ops &ops);

} // namespace ntb::verbs::shim

#endif
