// SPDX-License-Identifier: BSD-3-Clause
// Posting of one-sided operations: each is checked, then stored through the memory window at once
// or queued after the outstanding ones.
#include <algorithm>
#include <cerrno>

#include <rte_branch_prediction.h>

#include "rma/cq.hpp"
#include "rma/one_sided.hpp"
#include "rma/remote.hpp"
#include "rma/requester.hpp"
#include "transport/worker.hpp"

namespace ntbmsg
{

namespace
{

constexpr uint8_t flags_known = NTBMSG_WORK_SIGNAL | NTBMSG_WORK_CONFIRM;

bool is_write(uint8_t op)
{
    return op == NTBMSG_OP_WRITE || op == NTBMSG_OP_WRITE_IMM;
}

bool is_atomic(uint8_t op)
{
    return op == NTBMSG_OP_FETCH_ADD || op == NTBMSG_OP_COMPARE_SWAP;
}

uint32_t right_of(uint8_t op)
{
    return is_write(op)    ? NTBMSG_RIGHT_WRITE
           : is_atomic(op) ? NTBMSG_RIGHT_ATOMIC
                           : NTBMSG_RIGHT_READ;
}

/// @return the length of all pieces; -EINVAL: an invalid piece, or too long
int64_t bytes_of(const ntbmsg_work &work)
{
    if (unlikely(work.sge_count > NTBMSG_MAX_SGES || (work.sge_count != 0 && work.sges == nullptr)))
        return -EINVAL;
    int64_t bytes = 0;
    for (uint16_t i = 0; i < work.sge_count; ++i) {
        if (unlikely(work.sges[i].address == nullptr && work.sges[i].bytes != 0))
            return -EINVAL;
        bytes += work.sges[i].bytes;
    }
    return bytes <= NTBMSG_MAX_OPERATION ? bytes : -EINVAL;
}

[[gnu::always_inline]] inline bool is_of(const ntbmsg_channel &c, const ntbmsg_remote *remote)
{
    return is_live(remote, "ntbmsg_channel_post_burst") && remote->channel == &c &&
           remote->word == c.rx_word.load(std::memory_order_relaxed);
}

/// Whether what is stored directly is complete with its last store.
[[gnu::always_inline]] inline bool completes_at_once(const ntbmsg_channel &c, const Requester &r)
{
    return c.cq->fn == nullptr &&
           r.posted.load(std::memory_order_relaxed) == r.completed.load(std::memory_order_acquire);
}

/// @return bytes of the operation, or a negative errno of ntbmsg_channel_post_burst()
int64_t check(const ntbmsg_channel &c, const ntbmsg_work &work)
{
    if (unlikely(!is_of(c, work.remote) || work.op < NTBMSG_OP_WRITE ||
                 work.op > NTBMSG_OP_COMPARE_SWAP || (work.flags & ~flags_known) != 0))
        return -EINVAL;
    int64_t bytes = bytes_of(work);
    if (unlikely(bytes < 0))
        return bytes;
    const ntbmsg_remote &remote = *work.remote;
    if (is_atomic(work.op)) {
        if (unlikely(work.sge_count != 0 || work.offset % sizeof(uint64_t) != 0))
            return -EINVAL;
        bytes = sizeof(uint64_t);
    }
    if (unlikely((remote.rights & right_of(work.op)) == 0))
        return -EACCES;
    const auto length = static_cast<uint64_t>(bytes);
    if (unlikely(length > remote.bytes || work.offset > remote.bytes - length))
        return -ERANGE;
    return bytes;
}

void store_pieces(const ntbmsg_channel &c, const Requester &r, const ntbmsg_work &work)
{
    std::byte *to = work.remote->address + work.offset;
    for (uint16_t i = 0; i < work.sge_count; ++i) {
        const ntbmsg_sge &piece = work.sges[i];
        if (piece.bytes < RTE_PMD_PLX_NTB_WINDOW_LONG)
            c.worker->store(to, piece.address, piece.bytes);
        else
            rte_pmd_plx_ntb_window_writer_store(r.writer, to, piece.address, piece.bytes);
        to += piece.bytes;
    }
}

/// The completion of a write whose last store it is complete with.
[[gnu::always_inline]] inline void put_written(ntbmsg_channel &c, const ntbmsg_work &work,
                                               uint32_t bytes)
{
    cq_put(c, {.id = work.id,
               .channel = handle_of(c),
               .user = c.user,
               .value = 0,
               .bytes = bytes,
               .imm = 0,
               .status = 0,
               .op = work.op,
               .reserved = {}});
}

/// A write that is complete with its last store; no earlier operation is outstanding.
/// @return false: no room in the completion queue
bool store_and_complete(ntbmsg_channel &c, const Requester &r, const ntbmsg_work &work,
                        uint32_t bytes)
{
    const bool signal = (work.flags & NTBMSG_WORK_SIGNAL) != 0;
    if (signal && !cq_reserve(c))
        return false;
    store_pieces(c, r, work);
    if (signal)
        put_written(c, work, bytes);
    return true;
}

bool push(ntbmsg_channel &c, Requester &r, const ntbmsg_work &work, uint32_t bytes, bool stored)
{
    const uint8_t pieces = stored ? 0 : static_cast<uint8_t>(work.sge_count);
    if (!requester_has_room(r, pieces) || !cq_reserve(c))
        return false;
    Operation o{};
    o.remote = work.remote;
    o.id = work.id;
    o.offset = work.offset;
    o.operand = work.operand;
    o.compare = work.compare;
    o.bytes = bytes;
    o.imm = work.imm;
    o.piece_count = pieces;
    o.op = work.op;
    o.flags = work.flags;
    o.stored = stored;
    o.all_sent = stored && work.op == NTBMSG_OP_WRITE && (work.flags & NTBMSG_WORK_CONFIRM) == 0;
    if (stored)
        store_pieces(c, r, work);
    else if (work.op != NTBMSG_OP_READ) {
        work.remote->last_change = r.posted.load(std::memory_order_relaxed);
        work.remote->has_change = true;
    }
    requester_push(r, o, work.sges);
    return true;
}

/// @return false: back-pressure
bool take(ntbmsg_channel &c, Requester &r, const ntbmsg_work &work, uint32_t bytes)
{
    const int path = is_write(work.op) ? remote_path(*work.remote, r) : 0;
    if (path < 0)
        return false;
    const bool at_once = path > 0 && work.op == NTBMSG_OP_WRITE &&
                         (work.flags & NTBMSG_WORK_CONFIRM) == 0 && completes_at_once(c, r);
    return at_once ? store_and_complete(c, r, work, bytes) : push(c, r, work, bytes, path > 0);
}

/// Whether nothing but its range has to be known before a work is stored, if the remote is written
/// directly.
/// @param flags  all that it has
[[gnu::always_inline]] inline bool is_plain_write(const ntbmsg_work &work,
                                                  const ntbmsg_remote *remote, uint8_t flags)
{
    return work.remote == remote && work.op == NTBMSG_OP_WRITE && work.flags == flags &&
           work.sge_count == 1 && work.sges != nullptr;
}

/// Whether writes to it are complete with their stores.
[[gnu::always_inline]] inline bool is_written_directly(const ntbmsg_channel &c, const Requester &r,
                                                       const ntbmsg_remote *remote)
{
    return is_of(c, remote) && (remote->rights & NTBMSG_RIGHT_WRITE) != 0 &&
           remote->path.load(std::memory_order_acquire) == Path::direct && completes_at_once(c, r);
}

/// Where a short write goes.
struct Target {
    explicit Target(const ntbmsg_remote &remote)
        : to(remote.address), end(remote.bytes),
          longest(std::min<uint64_t>(end, RTE_PMD_PLX_NTB_WINDOW_LONG - 1))
    {
        static_assert(RTE_PMD_PLX_NTB_WINDOW_LONG <= NTBMSG_MAX_OPERATION);
    }
    bool takes(const ntbmsg_work &work) const
    {
        const ntbmsg_sge &piece = work.sges[0];
        return likely(piece.bytes <= longest && work.offset <= end - piece.bytes &&
                      piece.address != nullptr);
    }

    std::byte *const to;
    const uint64_t end;
    const uint64_t longest;
};

/// Stores the short plain writes at the front that go to one remote, which is checked once for all,
/// up to one that asks for a completion.
/// @return how many; the next one, if any, is another kind, long, invalid, without room for its
/// completion, or behind one
inline uint16_t store_writes(ntbmsg_channel &c, const Requester &r, const ntbmsg_work *works,
                             uint16_t n)
{
    const ntbmsg_remote *const remote = works[0].remote;
    if (works[0].op != NTBMSG_OP_WRITE || !is_written_directly(c, r, remote))
        return 0;
    const rte_pmd_plx_ntb_window_store_fn store = c.worker->store;
    const Target target(*remote);
    uint16_t i = 0;
    for (; i < n && is_plain_write(works[i], remote, 0) && target.takes(works[i]); ++i)
        store(target.to + works[i].offset, works[i].sges[0].address, works[i].sges[0].bytes);
    if (i == n || !is_plain_write(works[i], remote, NTBMSG_WORK_SIGNAL) ||
        !target.takes(works[i]) || !cq_reserve(c))
        return i;
    const uint32_t bytes = works[i].sges[0].bytes;
    store(target.to + works[i].offset, works[i].sges[0].address, bytes);
    put_written(c, works[i], bytes);
    return i + 1;
}

/// What is not, or not only, short writes that are complete with their stores.
/// @param taken  works before it. @return as ntbmsg_channel_post_burst()
__rte_noinline int post_others(ntbmsg_channel &c, Requester &r, const ntbmsg_work *works,
                               uint16_t n, uint16_t taken)
{
    const uint32_t before = r.posted.load(std::memory_order_relaxed);
    int refused = 0;
    while (taken < n) {
        const int64_t bytes = check(c, works[taken]);
        if (unlikely(bytes < 0)) {
            refused = static_cast<int>(bytes);
            break;
        }
        if (!take(c, r, works[taken], static_cast<uint32_t>(bytes)))
            break;
        ++taken;
        if (taken < n)
            taken += store_writes(c, r, works + taken, static_cast<uint16_t>(n - taken));
    }
    if (r.posted.load(std::memory_order_relaxed) != before)
        one_sided_posted(c);
    return taken != 0 ? taken : refused;
}

} // namespace

} // namespace ntbmsg

int ntbmsg_channel_post_burst(ntbmsg_channel *channel, const ntbmsg_work *works, uint16_t n)
{
    ntbmsg_channel *c = ntbmsg::channel_of(channel, __func__);
    if (unlikely(c == nullptr || works == nullptr || n == 0))
        return -EINVAL;
    const ntbmsg::Using use(ntbmsg::watch_of_user(*c), "channel", __func__);
    if (const int rc = ntbmsg::post_error(*c); unlikely(rc != 0))
        return rc;
    ntbmsg::Requester *r = c->one_sided.requester();
    if (unlikely(r == nullptr))
        return -EINVAL; // no remote was ever opened for it
    const uint16_t stored = ntbmsg::store_writes(*c, *r, works, n);
    return likely(stored == n) ? n : ntbmsg::post_others(*c, *r, works, n, stored);
}
