// SPDX-License-Identifier: BSD-3-Clause
// The two halves of a queue pair as the device keeps them: the queue's own state behind a gate, and
// what bursts and the control thread leave for each other.
#ifndef PLX_NTB_DEVICE_QUEUE_PAIR_HPP
#define PLX_NTB_DEVICE_QUEUE_PAIR_HPP

#include <atomic>
#include <cstdint>

#include <pthread.h>

#include "device/queue_sleep.hpp"
#include "device/rest_count.hpp"
#include "device/stable_rx.hpp"
#include "queue/queue.hpp"
#include "sync/gate.hpp"

struct rte_mempool;

namespace plx::pmd
{

/// The halves of a queue pair. What a burst needs comes first.
template <class State, class Burst>
struct Half {
    Gate gate;
    State *state = nullptr;
    Burst burst = nullptr;
    uint32_t seen = 0;               ///< lcore's own: word of the gate it has taken notice of
    std::atomic<int> lcore_node{-2}; ///< NUMA node of the lcore; -2: not seen
    std::atomic<pthread_t> thread{}; ///< of the lcore in this generation; 0: not seen
    std::atomic<bool> broken{false}; ///< the peer broke the protocol on this half
    bool warned = false;             ///< control's own
    RestCount inlined;               ///< messages inside the ring; under the device's lock
};
struct RxHalf;
struct TxHalf : Half<queue::Tx, queue::TxBurst> {
    Doorbell doorbell; ///< of a receiver that sleeps
    std::atomic<uint64_t> *rings = nullptr;
    queue::TxHeld held; ///< control's own: as it was at the last tick
    RxHalf *rx = nullptr;
};
struct RxHalf : Half<queue::Rx, queue::RxBurst> {
    TxHalf *tx = nullptr;
};

struct QueuePair {
    QueuePair()
    {
        tx.rx = &rx;
        rx.tx = &tx;
    }
    TxHalf tx;
    RxHalf rx;
    rte_mempool *given_pool = nullptr; ///< the user's
    rte_mempool *own_pool = nullptr;   ///< made by us where the user gave none
    bool set_up = false;
    StableRx *stable = nullptr; ///< of rx=stable; holds rx.state
    QueueSleep sleep;
    queue::CacheHintReport cache_hint_logged = {}; ///< control's own: what the log knows of

    rte_mempool *inline_pool() const { return given_pool != nullptr ? given_pool : own_pool; }
};

} // namespace plx::pmd

#endif
