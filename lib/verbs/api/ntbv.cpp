// SPDX-License-Identifier: BSD-3-Clause
// The border in C: arguments, life, and the lock.
#include "ntbv.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include <sched.h>

#include "api/attach.hpp"
#include "engine/lone.hpp"

using namespace ntb::verbs;

namespace
{

constexpr unsigned all_rights =
    NTBV_LOCAL_WRITE | NTBV_REMOTE_WRITE | NTBV_REMOTE_READ | NTBV_REMOTE_ATOMIC | NTBV_MW_BIND;

// Objects are counted at what they stand on, which cannot go before them.
template <typename T, typename... Users>
int made(T *object, T **to, Users &...users)
{
    *to = object;
    (++users, ...);
    return 0;
}

// Of objects that a device says it has so many of: destroyed if there are as many.
// @param n  how many there are
template <typename T>
int made_of(std::uint32_t &n, std::uint32_t most, T *object, T **to, std::uint32_t &users)
{
    if (n == most) {
        delete object;
        return -ENOMEM;
    }
    return made(object, to, n, users);
}

bool in_range(std::uint32_t value, std::uint32_t most)
{
    return value >= 1 && value <= most;
}

bool can_be_region(const void *memory, uint64_t length, uint64_t iova, unsigned access)
{
    return (access & ~all_rights) == 0 &&
           ((access & (NTBV_REMOTE_WRITE | NTBV_REMOTE_ATOMIC)) == 0 ||
            (access & NTBV_LOCAL_WRITE) != 0) &&
           iova + length >= iova && reinterpret_cast<uintptr_t>(memory) + length >= length;
}

// The calls that a program makes all the time are as short as can be: of the owner of the lock they
// call nothing until there is something to do, so that no register has to be kept for that.

// Once somebody else wants the lock.
[[gnu::noinline]] int wake(Lock::Seat &seat, int result)
{
    Lock::wake(seat);
    return result;
}

// What such a call returns with.
int leave(Lock &lock, Lock::Seat &seat, int result)
{
    return lock.stand_up(seat) ? result : wake(seat, result);
}

// Whoever is to answer may wait for this CPU.
[[gnu::noinline]] int give_way(Lock &lock, Lock::Seat *seat, int result)
{
    lock.leave(seat);
    sched_yield();
    return result;
}

int result_of(const ntbv_cq &cq, int taken)
{
    return taken == 0 && cq.queue.overrun() ? -EIO : taken;
}

// Of an empty queue, once a word has changed.
template <Engine::Polled (Engine::*poll)(Link &)>
[[gnu::noinline, gnu::flatten]] int poll_by(ntbv_cq &cq, int n, ntbv_wc *wc, Lock::Seat *seat,
                                            Link &changed)
{
    Engine &engine = *cq.engine;
    cq.queue.lend(n, wc);
    const auto [done, of] = (engine.*poll)(changed);
    const bool is_tired = engine.count_poll(done);
    const int taken = cq.queue.give_back(wc);
    if (taken > 0) {
        if (of)
            engine.end_poll(*of);
        else
            engine.end_poll(wc[taken - 1]);
    } else if (is_tired) {
        return give_way(engine.lock(), seat, result_of(cq, 0));
    }
    engine.lock().leave(seat);
    return result_of(cq, taken);
}

// Two functions, as a message that has a mark needs to be nowhere in memory, and others do.
int poll_changed(ntbv_cq &cq, int n, ntbv_wc *wc, Lock::Seat *seat, Link &changed)
{
    if (changed.port->watch().is_of_mark()) [[likely]]
        return poll_by<&Engine::poll_marked>(cq, n, wc, seat, changed);
    return poll_by<&Engine::poll_counted>(cq, n, wc, seat, changed);
}

// Whatever is to be done, and whoever calls, who is inside.
[[gnu::noinline]] int poll_inside(ntbv_cq *cq, int n, ntbv_wc *wc, Lock::Seat *seat)
{
    Engine &engine = *cq->engine;
    engine.begin_call();
    bool is_tired = false;
    int taken = 0;
    if (!cq->queue.empty()) {
        taken = cq->queue.take(n, wc);
    } else if (engine.can_settle()) {
        Link *const changed = engine.find_changed();
        if (changed)
            return poll_changed(*cq, n, wc, seat, *changed);
        is_tired = engine.count_poll(0);
    } else {
        cq->queue.lend(n, wc);
        is_tired = engine.count_poll(engine.poll_all());
        taken = cq->queue.give_back(wc);
    }
    if (taken > 0)
        engine.end_poll(wc[taken - 1]);
    if (is_tired && taken == 0)
        return give_way(engine.lock(), seat, result_of(*cq, 0));
    engine.lock().leave(seat);
    return result_of(*cq, taken);
}

// Of the owner, where completions wait.
[[gnu::noinline]] int poll_there(ntbv_cq *cq, int n, ntbv_wc *wc, Lock::Seat *seat)
{
    Engine &engine = *cq->engine;
    if (n <= 0) [[unlikely]]
        return poll_inside(cq, n, wc, seat);
    engine.begin_call();
    const int taken = cq->queue.take(n, wc);
    engine.end_poll(wc[taken - 1]);
    return leave(engine.lock(), *seat, taken);
}

[[gnu::noinline]] int poll_entering(ntbv_cq *cq, int n, ntbv_wc *wc)
{
    return poll_inside(cq, n, wc, cq->engine->lock().enter());
}

[[gnu::noinline]] int poll_entering_again(ntbv_cq *cq, int n, ntbv_wc *wc, Lock::Seat *seat)
{
    cq->engine->lock().leave(seat);
    return poll_entering(cq, n, wc);
}

[[gnu::noinline]] int post_recv_inside(ntbv_qp *qp, const ntbv_recv_wr *wr,
                                       const ntbv_recv_wr **bad, Lock::Seat *seat)
{
    const int error = qp->engine->post_recv(*qp, wr, bad);
    qp->engine->lock().leave(seat);
    return error;
}

[[gnu::noinline]] int post_recv_entering(ntbv_qp *qp, const ntbv_recv_wr *wr,
                                         const ntbv_recv_wr **bad)
{
    return post_recv_inside(qp, wr, bad, qp->engine->lock().enter());
}

[[gnu::noinline]] int post_recv_entering_again(ntbv_qp *qp, const ntbv_recv_wr *wr,
                                               const ntbv_recv_wr **bad, Lock::Seat *seat)
{
    qp->engine->lock().leave(seat);
    return post_recv_entering(qp, wr, bad);
}

} // namespace

int ntb::verbs::attach(ntbv_engine &engine, Port &port, Address peer)
{
    const Visit visit(engine.lock());
    return engine.attach(port, peer);
}

int ntb::verbs::be_direct(ntbv_engine &engine, Segments &segments, ntbv_direct how)
{
    return engine.be_direct(segments, how == NTBV_DIRECT_SENDS);
}

ntbv_engine *ntbv_engine_create(uint16_t lid, uint16_t node, ntbv_clock clock, void *context)
{
    if (node > node_mask) {
        errno = EINVAL;
        return nullptr;
    }
    auto *engine = new (std::nothrow) ntbv_engine;
    const int error = engine ? engine->create(make_address(lid, node), clock, context) : -ENOMEM;
    if (error == 0)
        return engine;
    delete engine;
    errno = -error;
    return nullptr;
}

int ntbv_engine_destroy(ntbv_engine *engine)
{
    {
        const Visit visit(engine->lock());
        if (engine->users != 0)
            return -EBUSY;
    }
    delete engine;
    return 0;
}

int ntbv_engine_drive(ntbv_engine *engine)
{
    const Visit visit(engine->lock());
    return engine->drive();
}

int ntbv_engine_events(ntbv_engine *engine)
{
    return engine->events().descriptor();
}

uint64_t ntbv_engine_count(ntbv_engine *engine, ntbv_count which)
{
    const Visit visit(engine->lock());
    return engine->count(which);
}

int ntbv_pd_create(ntbv_engine *engine, ntbv_pd **pd)
{
    auto *made_pd = new (std::nothrow) ntbv_pd{engine, 0, 0};
    if (!made_pd)
        return -ENOMEM;
    const Visit visit(engine->lock());
    made_pd->id = engine->next_pd++;
    return made_of(engine->n_pds, NTBV_MAX_PD, made_pd, pd, engine->users);
}

int ntbv_pd_destroy(ntbv_pd *pd)
{
    {
        const Visit visit(pd->engine->lock());
        if (pd->users != 0)
            return -EBUSY;
        --pd->engine->n_pds;
        --pd->engine->users;
    }
    delete pd;
    return 0;
}

int ntbv_mr_register(ntbv_pd *pd, void *memory, uint64_t length, uint64_t iova, unsigned access,
                     uint32_t *key)
{
    if (!can_be_region(memory, length, iova, access))
        return -EINVAL;
    Engine::Offer offer = pd->engine->prepare(memory, length, access);
    const Visit visit(pd->engine->lock());
    const uint32_t added = pd->engine->keys().add(pd->id, memory, length, iova, access);
    if (added == 0)
        return -ENOMEM;
    pd->engine->share(added, std::move(offer));
    *key = added;
    ++pd->users;
    return 0;
}

int ntbv_mr_reregister(ntbv_pd *pd, uint32_t key, ntbv_pd *new_pd, void *memory, uint64_t length,
                       uint64_t iova, unsigned access)
{
    if (pd->engine != new_pd->engine || !can_be_region(memory, length, iova, access))
        return -EINVAL;
    // Its own pages first, as both may be the same memory. They stay served if nothing comes of it.
    {
        const Visit visit(pd->engine->lock());
        const int error = pd->engine->keys().may_change(pd->id, key);
        if (error != 0)
            return error;
        pd->engine->unshare(key);
    }
    Engine::Offer offer = pd->engine->prepare(memory, length, access);
    const Visit visit(pd->engine->lock());
    const int error = pd->engine->keys().may_change(pd->id, key);
    if (error != 0)
        return error;
    pd->engine->keys().change(pd->id, key, new_pd->id, memory, length, iova, access);
    pd->engine->share(key, std::move(offer));
    --pd->users;
    ++new_pd->users;
    return 0;
}

int ntbv_mr_deregister(ntbv_pd *pd, uint32_t key)
{
    const Visit visit(pd->engine->lock());
    const int error = pd->engine->keys().may_change(pd->id, key);
    if (error != 0)
        return error;
    pd->engine->unshare(key);
    pd->engine->keys().remove(pd->id, key);
    --pd->users;
    return 0;
}

int ntbv_mw_create(ntbv_pd *pd, ntbv_mw_type type, ntbv_mw **mw, uint32_t *key)
{
    if (type != NTBV_MW_1 && type != NTBV_MW_2)
        return -EINVAL;
    auto *made_mw = new (std::nothrow) ntbv_mw{pd, {}, type};
    if (!made_mw)
        return -ENOMEM;
    const Visit visit(pd->engine->lock());
    *key = pd->engine->keys().add_window(pd->id, type, made_mw->window);
    if (*key == 0) {
        delete made_mw;
        return -ENOMEM;
    }
    return made(made_mw, mw, pd->users);
}

void ntbv_mw_destroy(ntbv_mw *mw)
{
    {
        const Visit visit(mw->pd->engine->lock());
        mw->pd->engine->keys().remove_window(mw->window);
        --mw->pd->users;
    }
    delete mw;
}

int ntbv_channel_create(ntbv_engine *engine, ntbv_channel **channel)
{
    auto *made_channel = new (std::nothrow) ntbv_channel{.engine = engine};
    const int error = made_channel ? made_channel->pipe.create() : -ENOMEM;
    if (error != 0) {
        delete made_channel;
        return error;
    }
    const Visit visit(engine->lock());
    return made(made_channel, channel, engine->users);
}

int ntbv_channel_destroy(ntbv_channel *channel)
{
    {
        const Visit visit(channel->engine->lock());
        if (channel->users != 0)
            return -EBUSY;
        --channel->engine->users;
    }
    delete channel;
    return 0;
}

int ntbv_channel_descriptor(ntbv_channel *channel)
{
    return channel->pipe.descriptor();
}

int ntbv_cq_create(ntbv_engine *engine, uint32_t entries, ntbv_channel *channel, uint64_t cookie,
                   ntbv_cq **cq)
{
    if (!in_range(entries, NTBV_MAX_CQE) || (channel && channel->engine != engine))
        return -EINVAL;
    auto *made_cq = new (std::nothrow) ntbv_cq{.engine = engine, .channel = channel};
    if (!made_cq || !made_cq->queue.create(entries, channel ? &channel->pipe : nullptr, cookie)) {
        delete made_cq;
        return -ENOMEM;
    }
    const Visit visit(engine->lock());
    const int error = made_of(engine->n_cqs, NTBV_MAX_CQ, made_cq, cq, engine->users);
    if (error == 0 && channel)
        ++channel->users;
    return error;
}

int ntbv_cq_resize(ntbv_cq *cq, uint32_t entries)
{
    const Visit visit(cq->engine->lock());
    if (!in_range(entries, NTBV_MAX_CQE) || entries < cq->queue.count())
        return -EINVAL;
    return cq->queue.resize(entries) ? 0 : -ENOMEM;
}

int ntbv_cq_destroy(ntbv_cq *cq)
{
    {
        const Visit visit(cq->engine->lock());
        if (cq->users != 0)
            return -EBUSY;
        cq->owing.unlink();
        if (cq->channel)
            --cq->channel->users;
        --cq->engine->n_cqs;
        --cq->engine->users;
    }
    delete cq;
    return 0;
}

int ntbv_cq_poll(ntbv_cq *cq, int n, ntbv_wc *wc)
{
    Engine &engine = *cq->engine;
    Lock::Seat *const seat = engine.lock().own_seat();
    if (!seat) [[unlikely]]
        return poll_entering(cq, n, wc);
    if (!engine.lock().sit(*seat)) [[unlikely]]
        return poll_entering_again(cq, n, wc, seat);
    if (!cq->queue.empty()) [[unlikely]]
        return poll_there(cq, n, wc, seat);
    if (cq->queue.overrun() || !engine.is_settled() || !engine.has_one_peer()) [[unlikely]]
        return poll_inside(cq, n, wc, seat);
    engine.begin_call();
    Link *const changed = engine.find_one_changed();
    if (changed)
        return poll_changed(*cq, n, wc, seat, *changed);
    return engine.count_poll(0) ? give_way(engine.lock(), seat, 0) : leave(engine.lock(), *seat, 0);
}

int ntbv_cq_arm(ntbv_cq *cq, int solicited_only)
{
    const Visit visit(cq->engine->lock());
    if (!cq->queue.has_channel())
        return -EINVAL;
    cq->queue.arm(solicited_only != 0);
    cq->engine->expect_event();
    return 0;
}

int ntbv_srq_create(ntbv_pd *pd, uint32_t max_wr, uint32_t max_sge, uint32_t limit, uint64_t cookie,
                    ntbv_srq **srq)
{
    if (!in_range(max_wr, NTBV_MAX_WR) || max_sge > NTBV_MAX_SGE || limit > max_wr)
        return -EINVAL;
    auto *made_srq = new (std::nothrow)
        ntbv_srq{.engine = pd->engine, .pd = pd, .cookie = cookie, .limit = limit};
    if (!made_srq || !made_srq->receives.create(max_wr, max_sge)) {
        delete made_srq;
        return -ENOMEM;
    }
    const Visit visit(pd->engine->lock());
    return made_of(pd->engine->n_srqs, NTBV_MAX_SRQ, made_srq, srq, pd->users);
}

int ntbv_srq_destroy(ntbv_srq *srq)
{
    {
        const Visit visit(srq->engine->lock());
        if (srq->users != 0)
            return -EBUSY;
        --srq->engine->n_srqs;
        --srq->pd->users;
    }
    delete srq;
    return 0;
}

int ntbv_srq_modify(ntbv_srq *srq, unsigned mask, uint32_t limit)
{
    const Visit visit(srq->engine->lock());
    if (mask != NTBV_SRQ_LIMIT || limit > srq->receives.size())
        return -EINVAL;
    srq->limit = limit;
    return 0;
}

uint32_t ntbv_srq_limit(ntbv_srq *srq)
{
    const Visit visit(srq->engine->lock());
    return srq->limit;
}

int ntbv_srq_post(ntbv_srq *srq, const ntbv_recv_wr *wr, const ntbv_recv_wr **bad)
{
    const Call call(srq->engine->lock());
    const int error = srq->engine->post_srq(*srq, wr, bad);
    srq->engine->hand_over();
    return error;
}

int ntbv_qp_create(ntbv_pd *pd, ntbv_qp_init *init, ntbv_qp **qp)
{
    const Engine *engine = pd->engine;
    if (init->type != NTBV_RC && init->type != NTBV_UC && init->type != NTBV_UD)
        return -EOPNOTSUPP;
    if (!init->send_cq || !init->recv_cq || init->send_cq->engine != engine ||
        init->recv_cq->engine != engine || (init->srq && init->srq->engine != engine) ||
        init->max_send_wr > NTBV_MAX_WR || init->max_recv_wr > NTBV_MAX_WR ||
        init->max_send_sge > NTBV_MAX_SGE || init->max_recv_sge > NTBV_MAX_SGE ||
        init->max_inline > NTBV_MAX_INLINE)
        return -EINVAL;
    init->max_send_wr = std::max(init->max_send_wr, 1u);
    init->max_send_sge = std::max(init->max_send_sge, 1u);
    // A request has this room anyway, and programs send inline what any adapter would take.
    static_assert(NTBV_MAX_SGE * sizeof(ntbv_sge) <= NTBV_MAX_INLINE);
    init->max_inline = std::max(init->max_inline,
                                init->max_send_sge * static_cast<std::uint32_t>(sizeof(ntbv_sge)));
    init->max_recv_wr = init->srq ? 0 : std::max(init->max_recv_wr, 1u);
    init->max_recv_sge = init->srq ? 0 : std::max(init->max_recv_sge, 1u);
    auto *pair = new (std::nothrow) ntbv_qp{.engine = pd->engine,
                                            .pd = pd,
                                            .send_cq = init->send_cq,
                                            .recv_cq = init->recv_cq,
                                            .srq = init->srq,
                                            .cookie = init->cookie,
                                            .number = 0,
                                            .type = init->type,
                                            .signal_all = init->signal_all != 0};
    if (!pair ||
        !pair->send.queue.create(init->max_send_wr, init->max_send_sge, init->max_inline) ||
        (!init->srq && !pair->receive.queue.create(init->max_recv_wr, init->max_recv_sge)) ||
        (init->type == NTBV_RC && !pair->receive.answers.create(NTBV_MAX_READS)) ||
        (init->type == NTBV_RC && engine->is_direct() && !pair->direct.create(max_known))) {
        delete pair;
        return -ENOMEM;
    }
    const Visit visit(pd->engine->lock());
    const int error = pd->engine->enter(*pair);
    if (error != 0) {
        delete pair;
        return -ENOMEM;
    }
    if (init->srq)
        ++init->srq->users;
    return made(pair, qp, pd->users, init->send_cq->users, init->recv_cq->users);
}

int ntbv_qp_destroy(ntbv_qp *qp)
{
    {
        const Visit visit(qp->engine->lock());
        qp->engine->leave(*qp);
        qp->engine->hand_over();
        if (qp->srq)
            --qp->srq->users;
        --qp->send_cq->users;
        --qp->recv_cq->users;
        --qp->pd->users;
    }
    delete qp;
    return 0;
}

uint32_t ntbv_qp_number(const ntbv_qp *qp)
{
    return qp->number;
}

int ntbv_qp_modify(ntbv_qp *qp, const ntbv_qp_attr *attr, unsigned mask)
{
    const Visit visit(qp->engine->lock());
    // What the peer has answered before it hung up is not to be flushed.
    if ((mask & NTBV_QP_STATE) != 0 && attr->state == NTBV_ERR)
        qp->engine->drive();
    const int error = qp->engine->modify(*qp, *attr, mask);
    qp->engine->hand_over();
    return error;
}

int ntbv_qp_query(ntbv_qp *qp, ntbv_qp_attr *attr)
{
    const Visit visit(qp->engine->lock());
    *attr = qp->attr;
    attr->cur_state = attr->state;
    return 0;
}

[[gnu::flatten]] int ntbv_qp_post_send(ntbv_qp *qp, const ntbv_send_wr *wr,
                                       const ntbv_send_wr **bad)
{
    const Call call(qp->engine->lock());
    qp->engine->begin_call();
    const int error = qp->engine->post_send(*qp, wr, bad);
    qp->engine->hand_over();
    return error;
}

int ntbv_qp_post_send_all(ntbv_qp *qp, const ntbv_send_wr *wr)
{
    const Call call(qp->engine->lock());
    qp->engine->begin_call();
    const int error = qp->engine->post_send_all(*qp, wr);
    qp->engine->hand_over();
    return error;
}

int ntbv_qp_post_recv(ntbv_qp *qp, const ntbv_recv_wr *wr, const ntbv_recv_wr **bad)
{
    Engine &engine = *qp->engine;
    Lock::Seat *const seat = engine.lock().own_seat();
    if (!seat) [[unlikely]]
        return post_recv_entering(qp, wr, bad);
    if (!engine.lock().sit(*seat)) [[unlikely]]
        return post_recv_entering_again(qp, wr, bad, seat);
    if (!wr || wr->next || !Engine::only_keeps(*qp)) [[unlikely]]
        return post_recv_inside(qp, wr, bad, seat);
    const int error = qp->receive.queue.post(*wr);
    if (error != 0)
        *bad = wr;
    return leave(engine.lock(), *seat, error);
}
