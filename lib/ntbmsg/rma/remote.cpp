// SPDX-License-Identifier: BSD-3-Clause
// Regions of the peer: their tokens, and how writes reach them.
#include "rma/remote.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>

#include <rte_cycles.h>
#include <rte_malloc.h>
#include <rte_pmd_plx_ntb.h>

#include "rma/one_sided.hpp"
#include "transport/worker.hpp"
#include "wire/one_sided.hpp"

namespace ntbmsg
{

namespace
{

constexpr uint32_t rights_known = NTBMSG_RIGHT_WRITE | NTBMSG_RIGHT_READ | NTBMSG_RIGHT_ATOMIC;
constexpr uint64_t region_bytes_max = uint64_t{1} << 40;
/// Requests to a remote until a failed probe is repeated.
constexpr uint32_t probe_every = 64;

bool is_possible(const protocol::Token &t)
{
    return t.key != 0 && t.bytes != 0 && t.bytes <= region_bytes_max && t.rights != 0 &&
           (t.rights & ~rights_known) == 0 && t.direct <= 1 && t.reserved == 0;
}

/// The address of the token's region. @return NULL: none, or outside the memory window
std::byte *place_of(const Worker &w, const protocol::Token &t)
{
    rte_pmd_plx_ntb_window_view view{};
    if (t.direct == 0 || (t.rights & NTBMSG_RIGHT_WRITE) == 0 || w.store == nullptr ||
        t.window % protocol::probe_bytes != 0 || t.bytes % protocol::probe_bytes != 0 ||
        rte_pmd_plx_ntb_window_view_get(w.dev_id, t.window, t.bytes + protocol::probe_bytes,
                                        &view) != 0)
        return nullptr;
    return static_cast<std::byte *>(view.address);
}

} // namespace

void remote_probe(ntbmsg_remote &remote)
{
    Requester &r = *remote.channel->one_sided.requester();
    remote.until_probe = probe_every;
    if (!requester_has_room(r, 0))
        return;
    Operation probe{};
    probe.remote = &remote;
    probe.operand = rte_get_tsc_cycles() | 1; // a new value each time
    // Another probe of the same region may overwrite the value at this moment: the responder then
    // reports that it has not arrived, and the probe is repeated.
    std::byte *line = remote.address + remote.bytes;
    std::atomic_ref(*reinterpret_cast<uint64_t *>(line))
        .store(probe.operand, std::memory_order_relaxed);
    remote.channel->worker->store(line, &probe.operand, 0); // flushes it
    remote.path.store(Path::probing, std::memory_order_relaxed);
    requester_push(r, probe, nullptr);
}

int remote_path(ntbmsg_remote &remote, const Requester &r)
{
    switch (remote.path.load(std::memory_order_acquire)) {
    case Path::direct:
        return 1;
    case Path::found:
        // A store must not overtake a request to the same memory.
        if (remote.has_change && static_cast<int32_t>(r.retired.load(std::memory_order_acquire) -
                                                      remote.last_change) <= 0)
            return -EAGAIN;
        remote.path.store(Path::direct, std::memory_order_relaxed);
        return 1;
    case Path::served:
        if (remote.address != nullptr && --remote.until_probe == 0)
            remote_probe(remote);
        break;
    case Path::probing:
    case Path::closed:
        break;
    }
    return 0;
}

} // namespace ntbmsg

using ntbmsg::Path;

int ntbmsg_remote_open(ntbmsg_channel *channel, const ntbmsg_region_token *token,
                       ntbmsg_remote **out)
{
    ntbmsg_channel *c = ntbmsg::channel_of(channel, __func__);
    if (c == nullptr || token == nullptr || out == nullptr || c->cq == nullptr)
        return -EINVAL;
    const ntbmsg::Using use(ntbmsg::watch_of_user(*c), "channel", __func__);
    ntbmsg::protocol::Token t;
    static_assert(sizeof(t) == sizeof(token->bytes));
    std::memcpy(&t, token->bytes, sizeof(t));
    if (!ntbmsg::is_possible(t))
        return -EINVAL;
    if (ntbmsg::post_error(*c) != 0)
        return -ENOTCONN;
    if (ntbmsg::requester_of(*c) == nullptr)
        return -ENOMEM;
    auto *remote = static_cast<ntbmsg_remote *>(
        rte_zmalloc("ntbmsg_remote", sizeof(ntbmsg_remote), RTE_CACHE_LINE_SIZE));
    if (remote == nullptr)
        return -ENOMEM;
    remote->channel = c;
    remote->word = c->rx_word.load(std::memory_order_relaxed);
    remote->key = t.key;
    remote->bytes = t.bytes;
    remote->rights = t.rights;
    remote->address = ntbmsg::place_of(*c->worker, t);
    remote->until_probe = 1;
    remote->path.store(Path::served, std::memory_order_relaxed);
    if (remote->address != nullptr) {
        ntbmsg::remote_probe(*remote);
        ntbmsg::one_sided_posted(*c);
    }
    ntbmsg::begin_use(*remote);
    *out = remote;
    return 0;
}

void ntbmsg_remote_close(ntbmsg_remote *remote)
{
    if (!ntbmsg::is_live(remote, __func__))
        return;
    ntbmsg::mark_closed(*remote);
    if (remote->path.exchange(Path::closed, std::memory_order_acq_rel) != Path::probing)
        ntbmsg::end_use(remote);
}
