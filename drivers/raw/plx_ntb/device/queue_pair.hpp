// SPDX-License-Identifier: BSD-3-Clause
// The two halves of a queue pair in a device: the queue's state behind a gate, and what bursts and
// the control thread note for each other.
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
    uint32_t seen = Gate::no_word;   ///< by the lcore: word of the gate that it has seen
    std::atomic<int> lcore_node{-2}; ///< NUMA node of the lcore; -2: not seen
    std::atomic<pthread_t> thread{}; ///< that uses it since the gate was opened; 0: not seen
    std::atomic<bool> broken{false}; ///< the peer violated the protocol on this half
    bool warned = false;             ///< by the control thread
    RestCount inline_messages;       ///< inline messages; under the device's lock
};
struct RxHalf;
struct TxHalf : Half<queue::Tx, queue::TxBurst> {
    Doorbell doorbell; ///< of the peer's sleeping receiver
    std::atomic<uint64_t> *rings = nullptr;
    queue::TxHeld held; ///< by the control thread: state at the last tick
    RxHalf *rx = nullptr;
    queue::TxFlowBurst flow = nullptr;
    queue::TxReserve reserve = nullptr;
    queue::TxCommit commit = nullptr;
    /// By the lcore: receive buffers that it was given to fill, also those of a connection that has
    /// ended meanwhile, until it says that it stores to them no more.
    std::atomic<uint32_t> held_rooms{0};
    /// By the control thread: where the window was when their connection ended; NULL: where it is.
    std::byte *old_window = nullptr;
};
struct RxHalf : Half<queue::Rx, queue::RxBurst> {
    const queue::RxWatch *watch = nullptr; ///< of `state`
    queue::RxFlowBurst flow = nullptr;
    queue::RxFlowBurst next_flow = nullptr;
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
    rte_mempool *own_pool = nullptr;   ///< made by the driver if the user gave none
    bool set_up = false;
    StableRx *stable = nullptr; ///< of rx=stable; holds rx.state
    QueueSleep sleep;
    /// By the control thread: what was logged last.
    queue::TrialReport cache_hint_logged = {}, stores_logged = {}, inline_logged = {};

    rte_mempool *inline_pool() const { return given_pool != nullptr ? given_pool : own_pool; }
};

} // namespace plx::pmd

#endif
