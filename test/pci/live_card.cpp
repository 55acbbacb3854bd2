// SPDX-License-Identifier: BSD-3-Clause
#include "live_card.hpp"

#include "trap.hpp"

#include <cerrno>
#include <cstdio>
#include <list>
#include <map>
#include <mutex>
#include <stdexcept>

#include <bus_pci_driver.h>
#include <rte_bus_pci.h>
#include <rte_memory.h>
#include <rte_memzone.h>

namespace twin = plx::twin;

namespace test
{

namespace
{

constexpr unsigned data_bar = 2, shared_bar = 4;
constexpr uint32_t command = 4;

/// What the wrapped calls go by: names of functions.
std::map<std::string, LiveCard *> cards;
std::map<std::string, void *> all_engines; // LiveCard::Engine

std::string sysfs_address(unsigned bus, unsigned device_function)
{
    char text[16];
    std::snprintf(text, sizeof(text), "0000:%02x:%02x.%u", bus & 0xFF, device_function >> 3 & 0x1F,
                  device_function & 7);
    return text;
}

struct Zone {
    twin::Host *host;
    twin::Memory memory;
    rte_memzone zone;
};
std::list<Zone> zones;
std::mutex lock; // of both

} // namespace

/// The wrapped calls' way into a card.
struct CardAccess {
    static LiveCard *find(const std::string &name)
    {
        const std::lock_guard locked(lock);
        const auto card = cards.find(name);
        return card == cards.end() ? nullptr : card->second;
    }

    using Engine = LiveCard::Engine;
    static Engine *find_engine(const std::string &name)
    {
        const std::lock_guard locked(lock);
        const auto engine = all_engines.find(name);
        return engine == all_engines.end() ? nullptr : static_cast<Engine *>(engine->second);
    }

    static uint32_t engine_read(void *ctx, uint64_t offset)
    {
        const auto &engine = *static_cast<Engine *>(ctx);
        return twin::dma_read32(engine.card->host_, engine.channel, static_cast<uint32_t>(offset));
    }
    static void engine_write(void *ctx, uint64_t offset, uint32_t value)
    {
        const auto &engine = *static_cast<Engine *>(ctx);
        twin::dma_write32(engine.card->host_, engine.channel, static_cast<uint32_t>(offset), value);
    }
    static void engine_mapped(Engine *engine, rte_pci_device *pci)
    {
        const rte_mem_resource &bar = pci->mem_resource[0];
        trap({static_cast<std::byte *>(bar.addr), bar.len, engine_read, engine_write, engine});
    }
    static void engine_unmapped(rte_pci_device *pci)
    {
        untrap(static_cast<std::byte *>(pci->mem_resource[0].addr));
    }

    static uint32_t csr_read(void *ctx, uint64_t offset)
    {
        return twin::csr_read32(static_cast<LiveCard *>(ctx)->host_, static_cast<uint32_t>(offset));
    }
    static void csr_write(void *ctx, uint64_t offset, uint32_t value)
    {
        twin::csr_write32(static_cast<LiveCard *>(ctx)->host_, static_cast<uint32_t>(offset),
                          value);
    }
    static uint32_t shared_read(void *ctx, uint64_t offset)
    {
        uint32_t value = ~0u;
        twin::window_read(static_cast<LiveCard *>(ctx)->host_, shared_bar, offset, &value,
                          sizeof(value), twin::Config().cpu_read_rid);
        return value;
    }
    static void shared_write(void *ctx, uint64_t offset, uint32_t value)
    {
        twin::window_write(static_cast<LiveCard *>(ctx)->host_, shared_bar, offset, &value,
                           sizeof(value), twin::Config().cpu_write_rid);
    }

    static void interrupt(void *ctx)
    {
        const auto *card = static_cast<LiveCard *>(ctx);
        card->sysfs_.interrupt(card->address());
    }

    static void mapped(LiveCard *card, rte_pci_device *pci)
    {
        twin::on_interrupt(card->host_, interrupt, card);
        const rte_mem_resource &csr = pci->mem_resource[0];
        const rte_mem_resource &shared = pci->mem_resource[shared_bar];
        trap({static_cast<std::byte *>(csr.addr), csr.len, csr_read, csr_write, card});
        trap({static_cast<std::byte *>(shared.addr), shared.len, shared_read, shared_write, card});
        card->window_ = pci->mem_resource[data_bar].addr;
        pci->mem_resource[data_bar].addr =
            const_cast<void *>(twin::bar(card->host_, data_bar).base);
        // What EAL has written behind the driver's back: bus mastering.
        twin::config_write32(card->host_, command,
                             card->sysfs_.read32(card->address(), "config", command));
    }
    static void unmapped(LiveCard *card, rte_pci_device *pci)
    {
        twin::on_interrupt(card->host_, nullptr, nullptr);
        untrap(static_cast<std::byte *>(pci->mem_resource[0].addr));
        untrap(static_cast<std::byte *>(pci->mem_resource[shared_bar].addr));
        pci->mem_resource[data_bar].addr = card->window_;
        card->window_ = nullptr;
    }

    /// The file is what EAL reads: it shows what the chip holds now.
    static void refresh(LiveCard *card, uint32_t offset)
    {
        card->sysfs_.write32(card->address(), "config", offset,
                             twin::config_read32(card->host_, offset));
    }
    static void forward(LiveCard *card, uint32_t offset)
    {
        twin::config_write32(card->host_, offset,
                             card->sysfs_.read32(card->address(), "config", offset));
    }

    static const rte_memzone *reserve(LiveCard *card, const char *name, size_t bytes, int node)
    {
        Zone made{card->host_, {}, {}};
        if (twin::memory_add(made.host, bytes, node, false, &made.memory) != 0)
            return nullptr;
        std::snprintf(made.zone.name, sizeof(made.zone.name), "%s", name);
        made.zone.iova = made.memory.bus;
        made.zone.addr = made.memory.base;
        made.zone.len = bytes;
        made.zone.hugepage_sz = made.memory.page_bytes;
        made.zone.socket_id = node;
        const std::lock_guard locked(lock);
        zones.push_back(made);
        return &zones.back().zone;
    }
};

LiveCard::LiveCard(Sysfs &sysfs, uint8_t bus, const std::string &cable,
                   const twin::Switches &switches)
    : sysfs_(sysfs)
{
    attach(bus, cable, switches);
    show_memory();
    nt_.address = sysfs_address(bus + 2, 0);
    nt_.bridges = sysfs_address(bus, 0) + "/" + sysfs_address(bus + 1, 8 << 3);
    plug_endpoint();
    plug_engines(bus);
}

void LiveCard::attach(uint8_t bus, const std::string &cable, const twin::Switches &switches)
{
    twin::Config config;
    config.switches = switches;
    config.cable = cable.c_str();
    config.bar2_bytes = nt_.bars[data_bar].bytes;
    config.bar4_bytes = nt_.bars[shared_bar].bytes;
    config.dma_channels = engine_count;
    config.dma_rid = static_cast<uint16_t>(bus << 8);
    twin::Error error{};
    if (twin::attach(config, &host_, &error) != 0)
        throw std::runtime_error(error.text);
}

void LiveCard::plug_endpoint()
{
    nt_.config.clear();
    for (uint32_t offset = 0; offset < 4096; offset += 4)
        nt_.config[offset] = twin::config_read32(host_, offset);
    nt_.bars[data_bar].start = twin::bar(host_, data_bar).bus; // engines get that address
    sysfs_.plug(nt_);
    const std::lock_guard locked(lock);
    cards[nt_.address] = this;
}

void LiveCard::plug_engines(uint8_t bus)
{
    for (unsigned channel = 0; channel < engine_count; ++channel) {
        Engine &engine = engines_[channel];
        engine = {this, channel, {}};
        FakeFunction &f = engine.function;
        f.address = sysfs_address(bus, channel + 1);
        f.device = 0x87D0;
        f.class_code = 0x088000;
        f.config.clear();
        for (FakeBar &bar : f.bars)
            bar = {};
        f.bars[0] = {0xF6000000 + (uint64_t{bus} << 16) + channel * 0x2000, 0x2000, flag_memory};
        sysfs_.plug(f);
        const std::lock_guard locked(lock);
        all_engines[f.address] = &engine;
    }
}

/// The engines reach EAL's memory by its physical addresses, as those of a card do.
void LiveCard::show_memory()
{
    const auto come = [](void *host, void *address, uint64_t iova, size_t bytes) {
        return twin::dma_map(static_cast<twin::Host *>(host), address, iova, bytes);
    };
    const auto go = [](void *host, uint64_t iova, size_t bytes) {
        twin::dma_unmap(static_cast<twin::Host *>(host), iova, bytes);
    };
    if (memory_.follow({host_, come, go}) != 0)
        throw std::runtime_error("the twin does not take EAL's memory");
}

LiveCard::~LiveCard()
{
    {
        const std::lock_guard locked(lock);
        cards.erase(address());
        for (const Engine &engine : engines_)
            all_engines.erase(engine.function.address);
        // What the driver kept, because it could not know whether the peer still reaches it.
        zones.remove_if([this](const Zone &zone) { return zone.host == host_; });
    }
    memory_.leave();
    sysfs_.unplug(address());
    for (const Engine &engine : engines_)
        sysfs_.unplug(engine.function.address);
    twin::detach(host_);
}

} // namespace test

// ---- the driver's calls of EAL

using test::CardAccess;
using test::LiveCard;

extern "C" {

int __real_rte_pci_map_device(rte_pci_device *pci);
void __real_rte_pci_unmap_device(rte_pci_device *pci);
int __real_rte_pci_read_config(const rte_pci_device *pci, void *to, size_t bytes, off_t offset);
int __real_rte_pci_write_config(const rte_pci_device *pci, const void *from, size_t bytes,
                                off_t offset);
const rte_memzone *__real_rte_memzone_reserve_aligned(const char *name, size_t bytes, int node,
                                                      unsigned flags, unsigned align);
int __real_rte_memzone_free(const rte_memzone *zone);
rte_iova_t __real_rte_mem_virt2iova(const void *address);

int __wrap_rte_pci_map_device(rte_pci_device *pci)
{
    const int rc = __real_rte_pci_map_device(pci);
    if (LiveCard *card = CardAccess::find(pci->name); rc == 0 && card != nullptr)
        CardAccess::mapped(card, pci);
    if (CardAccess::Engine *engine = CardAccess::find_engine(pci->name);
        rc == 0 && engine != nullptr)
        CardAccess::engine_mapped(engine, pci);
    return rc;
}

void __wrap_rte_pci_unmap_device(rte_pci_device *pci)
{
    if (LiveCard *card = CardAccess::find(pci->name); card != nullptr)
        CardAccess::unmapped(card, pci);
    if (CardAccess::find_engine(pci->name) != nullptr)
        CardAccess::engine_unmapped(pci);
    __real_rte_pci_unmap_device(pci);
}

int __wrap_rte_pci_read_config(const rte_pci_device *pci, void *to, size_t bytes, off_t offset)
{
    if (LiveCard *card = CardAccess::find(pci->name); card != nullptr)
        CardAccess::refresh(card, static_cast<uint32_t>(offset));
    return __real_rte_pci_read_config(pci, to, bytes, offset);
}

int __wrap_rte_pci_write_config(const rte_pci_device *pci, const void *from, size_t bytes,
                                off_t offset)
{
    const int rc = __real_rte_pci_write_config(pci, from, bytes, offset);
    if (LiveCard *card = CardAccess::find(pci->name); card != nullptr)
        CardAccess::forward(card, static_cast<uint32_t>(offset));
    return rc;
}

const rte_memzone *__wrap_rte_memzone_reserve_aligned(const char *name, size_t bytes, int node,
                                                      unsigned flags, unsigned align)
{
    // "plx_<address>_<number>" is window memory of that function.
    const std::string text = name;
    const size_t end = text.rfind('_');
    if (text.starts_with("plx_") && end > 4)
        if (LiveCard *card = CardAccess::find(text.substr(4, end - 4)); card != nullptr)
            return CardAccess::reserve(card, name, bytes, node);
    return __real_rte_memzone_reserve_aligned(name, bytes, node, flags, align);
}

int __wrap_rte_memzone_free(const rte_memzone *zone)
{
    {
        const std::lock_guard locked(test::lock);
        for (auto made = test::zones.begin(); made != test::zones.end(); ++made) {
            if (&made->zone != zone)
                continue;
            const int rc = twin::memory_remove(made->host, made->memory);
            test::zones.erase(made);
            return rc;
        }
    }
    return __real_rte_memzone_free(zone);
}

rte_iova_t __wrap_rte_mem_virt2iova(const void *address)
{
    {
        const std::lock_guard locked(test::lock);
        for (const test::Zone &made : test::zones) {
            const auto *base = static_cast<const std::byte *>(made.memory.base);
            const auto *at = static_cast<const std::byte *>(address);
            if (at >= base && at < base + made.memory.bytes)
                return made.memory.bus + static_cast<uint64_t>(at - base);
        }
    }
    return __real_rte_mem_virt2iova(address);
}

} // extern "C"
