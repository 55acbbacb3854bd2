// SPDX-License-Identifier: BSD-3-Clause
// One host: a device, driven through DPDK's and the driver's public calls alone, that obeys a
// test's commands. Needs EAL.
#ifndef TEST_SUPPORT_LOCAL_DEVICE_HPP
#define TEST_SUPPORT_LOCAL_DEVICE_HPP

#include "commands.hpp"
#include "streams.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

struct rte_mbuf;
struct rte_mempool;

namespace test
{

class LocalDevice
{
public:
    LocalDevice();
    ~LocalDevice();
    LocalDevice(const LocalDevice &) = delete;
    LocalDevice &operator=(const LocalDevice &) = delete;

    /// One command at a time; observe() from any thread.
    Answer execute(const Command &command);
    Answer observe() const;
    /// What comes on queue 0 goes out by queue 0 of @p to: the same mbufs, command.value messages.
    Answer forward(LocalDevice &to, const Command &command);

    /// For what commands do not cover. Valid while attached.
    uint16_t id() const { return id_; }
    const char *name() const { return name_; }
    rte_mempool *pool() const { return send_pool_; } ///< for mbufs to send
    const std::vector<rte_mbuf *> &kept() const { return kept_; }

private:
    using Halves = std::vector<std::unique_ptr<Half>>;
    struct Watch;

    int64_t attach(const char *devargs);
    int64_t detach();
    int unplug();
    int64_t configure(const rte_pmd_plx_ntb_config &config);
    int64_t queue_setup(uint32_t pool_mbufs);
    rte_mempool *queue_pool(uint32_t queue, uint32_t mbufs);
    Answer traffic(const Command &command);
    Answer echo(const Command &command);
    Halves make_halves(const Command &command);
    static void run(Half &half, const Watch &watch);
    static void run_all(const Halves &halves, const Watch &watch);
    int64_t pattern(uint32_t seed);
    uint64_t harmed(uint32_t seed) const;
    void release();
    int discard();
    uint64_t outstanding() const;
    int64_t expose(uint64_t bytes, uint32_t rights, uint64_t *offset);
    int64_t revoke(bool and_free);
    volatile uint64_t *exposed_word(uint64_t at) const;
    int64_t peer_word(uint64_t offset, volatile uint64_t **word) const;
    unsigned losses() const;

    static void on_event(uint16_t device, rte_pmd_plx_ntb_event event, void *arg);

    char name_[32];
    bool attached_ = false;
    bool on_pci_ = false;
    uint16_t id_ = 0;
    uint32_t queues_ = 0;
    rte_mempool *send_pool_ = nullptr;
    std::vector<rte_mempool *> queue_pools_;
    std::vector<rte_mbuf *> kept_;
    rte_pmd_plx_ntb_memory exposed_{};
    mutable std::mutex mutex_; // guards events_
    std::string events_;
};

} // namespace test

#endif
