// SPDX-License-Identifier: BSD-3-Clause
#include "bus/twin_platform.hpp"

#include <cerrno>
#include <cstdlib>
#include <new>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#include <dpdk_compat.hpp>
#include <short_turns.hpp>
#include <twin.hpp>

#include "bus/eal_memory.hpp"
#include "hw/facts/plx_regs.hpp"
#include "sync/log.hpp"
#include "sync/starving.hpp"

namespace plx::pmd
{

namespace
{

/// A DMA function of the twin, for the register border.
struct TwinDma {
    twin::Host *host = nullptr;
    unsigned channel = 0;
};

/// A host of the twin as a platform.
struct TwinPlatform {
    twin::Host *host = nullptr;
    TwinDma dma[facts::dma_function_count];
    EalMemory eal_memory; ///< mapped for the engines
    uint16_t read_rid = 0;
    uint16_t write_rid = 0;
    void (*wake)(void *arg) = nullptr;
    void *wake_arg = nullptr;
    void (*interrupt)(void *arg) = nullptr;
    void *interrupt_arg = nullptr;
};

constexpr unsigned data_bar = 2;
constexpr unsigned shared_bar = 4;

TwinPlatform *self(void *ctx)
{
    return static_cast<TwinPlatform *>(ctx);
}

uint32_t own_read32(void *ctx, uint32_t offset)
{
    return twin::csr_read32(self(ctx)->host, offset);
}
void own_write32(void *ctx, uint32_t offset, uint32_t value)
{
    twin::csr_write32(self(ctx)->host, offset, value);
}
uint32_t own_config_read32(void *ctx, uint32_t offset)
{
    return twin::config_read32(self(ctx)->host, offset);
}
void own_config_write32(void *ctx, uint32_t offset, uint32_t value)
{
    twin::config_write32(self(ctx)->host, offset, value);
}
// The peer's CSRs lie at the start of the shared window.
uint32_t peer_read32(void *ctx, uint32_t offset)
{
    uint32_t value = ~0u;
    twin::window_read(self(ctx)->host, shared_bar, offset, &value, sizeof(value),
                      self(ctx)->read_rid);
    return value;
}
void peer_write32(void *ctx, uint32_t offset, uint32_t value)
{
    twin::window_write(self(ctx)->host, shared_bar, offset, &value, sizeof(value),
                       self(ctx)->write_rid);
}
void delay_us(void *, uint32_t microseconds)
{
    rte_delay_us_sleep(microseconds);
}

const hw::RegIoOps own_ops = {own_read32, own_write32, own_config_read32, own_config_write32,
                              delay_us};
const hw::RegIoOps peer_ops = {peer_read32, peer_write32, nullptr, nullptr, delay_us};

uint32_t dma_read32(void *ctx, uint32_t offset)
{
    const auto *dma = static_cast<const TwinDma *>(ctx);
    return twin::dma_read32(dma->host, dma->channel, offset);
}
void dma_write32(void *ctx, uint32_t offset, uint32_t value)
{
    const auto *dma = static_cast<const TwinDma *>(ctx);
    twin::dma_write32(dma->host, dma->channel, offset, value);
}
const hw::RegIoOps dma_ops = {dma_read32, dma_write32, nullptr, nullptr, delay_us};

int memory_come(void *ctx, void *address, uint64_t iova, size_t bytes)
{
    return twin::dma_map(self(ctx)->host, address, iova, bytes);
}
void memory_go(void *ctx, uint64_t iova, size_t bytes)
{
    twin::dma_unmap(self(ctx)->host, iova, bytes);
}

int memory_alloc(void *ctx, size_t bytes, int node, const hw::WindowRules &, WindowMemory *out)
{
    twin::Memory memory;
    const int rc =
        twin::memory_add(self(ctx)->host, bytes, node, rte_eal_has_hugepages() != 0, &memory);
    if (rc == 0)
        *out = {static_cast<std::byte *>(memory.base), memory.bus, memory.bytes, memory.page_bytes};
    return rc;
}

void memory_free(void *ctx, const WindowMemory &memory)
{
    twin::memory_remove(self(ctx)->host, {.base = memory.base,
                                          .bus = memory.bus,
                                          .bytes = memory.bytes,
                                          .page_bytes = memory.page_bytes});
}

bool peer_present(void *ctx)
{
    return twin::cable_connected(self(ctx)->host);
}

void on_cable(void *ctx, bool)
{
    self(ctx)->wake(self(ctx)->wake_arg);
}

void watch_peer(void *ctx, void (*wake)(void *arg), void *arg)
{
    // Off first: the callback never sees half of a new pair.
    twin::on_cable(self(ctx)->host, nullptr, nullptr);
    self(ctx)->wake = wake;
    self(ctx)->wake_arg = arg;
    if (wake != nullptr)
        twin::on_cable(self(ctx)->host, on_cable, ctx);
}

void on_interrupt(void *ctx)
{
    self(ctx)->interrupt(self(ctx)->interrupt_arg);
}

int watch_interrupt(void *ctx, void (*fn)(void *arg), void *arg)
{
    twin::on_interrupt(self(ctx)->host, nullptr, nullptr);
    self(ctx)->interrupt = fn;
    self(ctx)->interrupt_arg = arg;
    if (fn != nullptr)
        twin::on_interrupt(self(ctx)->host, on_interrupt, ctx);
    return 0;
}

/// Enables MSI, which a kernel does for a card.
void enable_msi(twin::Host *host)
{
    constexpr uint32_t enable = uint32_t{1} << 16; // G: message control
    const uint32_t at = facts::reg::msi_control;
    twin::config_write32(host, facts::reg::msi_mask, 0);
    twin::config_write32(host, at, twin::config_read32(host, at) | enable);
}

struct FaultPair {
    rte_pmd_plx_ntb_fault asked;
    twin::Fault fault;
};
constexpr FaultPair faults[] = {
    {RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, twin::Fault::link_down},
    {RTE_PMD_PLX_NTB_FAULT_PORT_DISABLED, twin::Fault::port_disabled},
    {RTE_PMD_PLX_NTB_FAULT_CABLE_PULLED, twin::Fault::cable_pulled},
    {RTE_PMD_PLX_NTB_FAULT_CARD_GONE, twin::Fault::card_gone},
    {RTE_PMD_PLX_NTB_FAULT_DROP_DOORBELLS, twin::Fault::drop_doorbells},
    {RTE_PMD_PLX_NTB_FAULT_LATE_DOORBELLS, twin::Fault::late_doorbells},
    {RTE_PMD_PLX_NTB_FAULT_FREEZE_REMAPS, twin::Fault::freeze_remaps},
    {RTE_PMD_PLX_NTB_FAULT_DMA_STALL, twin::Fault::dma_stall},
    {RTE_PMD_PLX_NTB_FAULT_DMA_HANG, twin::Fault::dma_hang},
    {RTE_PMD_PLX_NTB_FAULT_DMA_READ_ERROR, twin::Fault::dma_read_error},
    {RTE_PMD_PLX_NTB_FAULT_DMA_WRITE_ERROR, twin::Fault::dma_write_error},
    {RTE_PMD_PLX_NTB_FAULT_DMA_LINK_LOSS, twin::Fault::dma_link_loss},
    {RTE_PMD_PLX_NTB_FAULT_DMA_LATE, twin::Fault::dma_late},
    {RTE_PMD_PLX_NTB_FAULT_DMA_REQUESTER, twin::Fault::dma_requester},
};

int inject(void *ctx, rte_pmd_plx_ntb_fault fault, uint32_t argument)
{
    for (const FaultPair &pair : faults)
        if (pair.asked == fault)
            return twin::inject(self(ctx)->host, pair.fault, argument);
    return -ENOTSUP;
}

int window_move(void *ctx, std::byte **window)
{
    void *old = nullptr;
    const int rc = twin::window_move(self(ctx)->host, data_bar, &old);
    if (rc == 0)
        *window =
            static_cast<std::byte *>(const_cast<void *>(twin::bar(self(ctx)->host, data_bar).base));
    return rc;
}

void window_forget(void *ctx, std::byte *old)
{
    twin::window_forget(self(ctx)->host, data_bar, old);
}

void detach(void *ctx)
{
    self(ctx)->eal_memory.leave();
    twin::detach(self(ctx)->host);
    rte_free(ctx);
}

const PlatformOps twin_ops = {"twin",      memory_alloc,    memory_free, peer_present,
                              watch_peer,  watch_interrupt, detach,      inject,
                              window_move, window_forget};

/// The twin's threads are EAL control threads: they stay off the polling lcores where there is
/// room.
struct Thread {
    pthread_t id;
    void *(*body)(void *);
    void *arg;
};

dpdk::ThreadResult thread_run(void *arg)
{
    const auto *thread = static_cast<const Thread *>(arg);
    ntb::ask_for_short_turns();
    leave_starvation();
    thread->body(thread->arg);
    return {};
}

int thread_start(void **thread, const char *name, void *(*body)(void *), void *arg)
{
    auto *made = static_cast<Thread *>(std::malloc(sizeof(Thread)));
    if (made == nullptr)
        return -ENOMEM;
    made->body = body;
    made->arg = arg;
    const int rc = dpdk::create_control_thread(&made->id, name, thread_run, made);
    if (rc != 0) {
        std::free(made);
        return rc;
    }
    *thread = made;
    return 0;
}

void thread_join(void *thread)
{
    pthread_join(static_cast<Thread *>(thread)->id, nullptr);
    std::free(thread);
}

/// The twin's DMA functions, and the memory that they are to reach.
int open_dma(TwinPlatform *made, Platform *platform)
{
    const unsigned channels = twin::dma_channels(made->host);
    if (channels == 0)
        return 0;
    const int rc = made->eal_memory.follow({made, memory_come, memory_go});
    if (rc != 0)
        return rc;
    for (unsigned i = 0; i < channels; ++i) {
        made->dma[i] = {made->host, i};
        platform->dma[i] = {&dma_ops, &made->dma[i]};
        platform->dma_requesters[i] = twin::dma_requester(made->host, i);
    }
    platform->dma_channels = channels;
    platform->window_bus = twin::bar(made->host, data_bar).bus;
    return 0;
}

} // namespace

int open_twin(const char *name, const Options &options, Platform *out)
{
    auto *made = static_cast<TwinPlatform *>(rte_zmalloc("plx_twin", sizeof(TwinPlatform), 0));
    if (made == nullptr)
        return -ENOMEM;
    new (made) TwinPlatform;
    twin::Config config;
    config.cable = options.cable;
    config.cable_uid = options.cable_uid;
    config.state = options.state == TwinState::keep    ? twin::ChipState::keep
                   : options.state == TwinState::reset ? twin::ChipState::reset
                   : options.state == TwinState::file  ? twin::ChipState::file
                                                       : twin::ChipState::random;
    config.state_file = options.state_file;
    config.random_seed = options.state_seed;
    config.alut_entries = options.alut;
    config.topology = options.topology == hw::Topology::root_port ? twin::Topology::root_port
                                                                  : twin::Topology::back_to_back;
    config.link_side = options.link_side;
    config.nt = options.nt;
    config.dma_link_channels = options.dma_link;
    config.thread_start = thread_start;
    config.thread_join = thread_join;
    twin::Error error{};
    int rc = twin::attach(config, &made->host, &error);
    if (rc != 0) {
        PLX_INIT_LOG(ERR, "%s: cable=%s: %s\n", name, options.cable, error.text);
        rte_free(made);
        return rc;
    }
    made->read_rid = config.cpu_read_rid;
    made->write_rid = config.cpu_write_rid;
    if (options.msi != 0)
        enable_msi(made->host);
    const twin::Bar data = twin::bar(made->host, data_bar);
    const twin::Bar shared = twin::bar(made->host, shared_bar);
    *out = {.ops = &twin_ops,
            .ctx = made,
            .own = {&own_ops, made},
            .peer = {&peer_ops, made},
            .window = static_cast<std::byte *>(const_cast<void *>(data.base)),
            .window_bytes = data.bytes,
            .shared_bytes = shared.bytes,
            .write_combining = false,
            .node = -1,
            .store_rights = hw::rights_all};
    rc = open_dma(made, out);
    if (rc != 0)
        detach(made);
    return rc;
}

int twin_dma_map(const Platform &platform, void *address, uint64_t iova, size_t bytes)
{
    return twin::dma_map(self(platform.ctx)->host, address, iova, bytes);
}

int twin_dma_unmap(const Platform &platform, uint64_t iova, size_t bytes)
{
    return twin::dma_unmap(self(platform.ctx)->host, iova, bytes);
}

} // namespace plx::pmd
