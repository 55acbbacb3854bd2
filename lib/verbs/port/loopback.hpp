// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_PORT_LOOPBACK_HPP
#define NTB_VERBS_PORT_LOOPBACK_HPP

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include <pthread.h>

#include "port/port.hpp"

namespace ntb::verbs
{

/// Two ports of one process, joined to each other; the ends may be used by two threads. Any thread
/// causes faults.
class Loopback
{
public:
    /// @param ring_bytes  of each direction, a power of two from 4096 on; the longest message has
    /// an
    ///                    eighth of it
    /// @return NULL and errno: no memory, no descriptors
    static std::unique_ptr<Loopback> create(std::uint32_t ring_bytes);
    ~Loopback();

    Port &end(int index) { return ends_[index]; }
    /// Messages of that end, sent from now on, arrive once they are let go.
    void hold(int index, bool held) { ends_[index].hold(held); }
    /// That end finds no room.
    void set_full(int index, bool full) { ends_[index].full_.store(full); }
    /// Long data are divided to messages of at most so many bytes.
    void divide(std::uint32_t bytes) { divided_.store(bytes); }
    /// Nothing is granted any more.
    void grant_nothing() { grants_nothing_.store(true); }
    /// Both ends find the other one gone.
    void kill() { dead_.store(true); }
    bool dead() const { return dead_.load(); }

private:
    struct Ring {
        std::unique_ptr<std::byte[]> data;
        alignas(64) std::atomic<std::uint64_t> head{0}; // behind the last message
        std::atomic<std::uint64_t> shown{0};            // behind the last one that arrives
        std::atomic<bool> held{false};
        alignas(64) std::atomic<std::uint64_t> tail{0}; // behind the last one that was released
        std::atomic<bool> sleeps{false};                // who receives is armed
        std::atomic<bool> starves{false};               // who sends is armed for room
        std::uint64_t left = 0;                         // by who sends; atomic
        int bell[2] = {-1, -1};
    };

    class End final : public Port
    {
    public:
        std::uint32_t longest() const override { return loopback_->bytes_ / 8; }
        std::uint32_t suitable(std::uint32_t bytes) override
        {
            return std::min(bytes, loopback_->divided_.load(std::memory_order_relaxed));
        }
        std::byte *reserve(std::uint32_t bytes) override;
        void commit(std::uint32_t bytes, const iovec *parts, int n) override;
        void publish() override {} // commit() does
        bool receive(Incoming &message) override;
        void release() override;
        bool alive() override { return !loopback_->dead_.load(std::memory_order_relaxed); }
        void close() override { loopback_->kill(); }
        bool arm(bool for_room) override;
        void disarm() override;
        int bell() const override { return in_->bell[0]; }
        std::uint64_t left() const override { return std::atomic_ref(in_->left).load(); }
        std::uint64_t grant(const std::shared_ptr<Segment> &segment, bool writable) override;
        void revoke(std::uint64_t number) override;
        Opening open(std::uint64_t number) override;
        void hold(bool held);

    private:
        friend class Loopback;
        void join(Loopback &loopback, Ring &in, Ring &out);
        void show(std::uint64_t head);
        bool has_room() const;
        static void ring_bell(Ring &ring);

        Loopback *loopback_ = nullptr;
        Ring *in_ = nullptr, *out_ = nullptr;
        std::atomic<bool> full_{false};
        std::uint64_t reserved_ = 0;  // where the reserved message begins
        std::uint64_t tail_seen_ = 0; // of out_
        std::uint64_t next_ = 0;      // begins behind the message that is being received
    };

    Loopback() = default;

    /// That may be opened. The descriptor is a duplicate.
    struct Grant {
        std::uint64_t number = 0; // 0: free
        const End *by = nullptr;
        int descriptor = -1;
        std::uint64_t bytes = 0;
        bool writable = false;
    };
    static constexpr std::size_t max_grants = 64;

    std::uint32_t bytes_ = 0;
    Ring rings_[2];
    End ends_[2];
    std::atomic<bool> dead_{false};
    std::atomic<std::uint32_t> divided_{UINT32_MAX};
    std::atomic<bool> grants_nothing_{false};
    pthread_mutex_t grants_mutex_ = PTHREAD_MUTEX_INITIALIZER; // of what follows
    std::uint64_t next_grant_ = 1;
    Grant grants_[max_grants];
};

} // namespace ntb::verbs

#endif
