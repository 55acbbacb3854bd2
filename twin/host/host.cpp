// SPDX-License-Identifier: BSD-3-Clause
#include "host/host.hpp"
#include "host/fault.hpp"

#include "host/interrupt.hpp"
#include "plx_fields.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

namespace plx::twin
{

namespace
{
using facts::Side;
namespace reg = facts::reg;

constexpr char mem_prefix[] = "mem:";
constexpr uint64_t bar_bytes_max = uint64_t{64} << 30;

int start_pthread(void **thread, const char *name, void *(*body)(void *), void *arg)
{
    auto *id = new (std::nothrow) pthread_t;
    if (id == nullptr)
        return -ENOMEM;
    const int error = pthread_create(id, nullptr, body, arg);
    if (error != 0) {
        delete id;
        return -error;
    }
    pthread_setname_np(*id, name);
    *thread = id;
    return 0;
}

void join_pthread(void *thread)
{
    auto *id = static_cast<pthread_t *>(thread);
    pthread_join(*id, nullptr);
    delete id;
}

bool is_size(uint64_t bytes, uint64_t min)
{
    return bytes >= min && bytes <= bar_bytes_max && (bytes & (bytes - 1)) == 0;
}

int check(const Config &config, Error *error)
{
    if (config.cable == nullptr || config.cable[0] == '\0')
        return fail(error, -EINVAL, "no cable: a socket path or mem:<name> is needed");
    if (strlen(config.cable) >= sizeof(Host::cable_name))
        return fail(error, -ENAMETOOLONG, "the cable's name is too long");
    if (!is_size(config.bar2_bytes, uint64_t{1} << 20))
        return fail(error, -EINVAL,
                    "BAR2 of %llu bytes: a power of two from 1 MiB to 64 GiB is needed",
                    static_cast<unsigned long long>(config.bar2_bytes));
    if (!is_size(config.bar4_bytes, uint64_t{2} << 20))
        return fail(error, -EINVAL,
                    "BAR4 of %llu bytes: a power of two from 2 MiB to 64 GiB is needed",
                    static_cast<unsigned long long>(config.bar4_bytes));
    if (config.dma_channels > facts::dma_function_count)
        return fail(error, -EINVAL, "%u DMA channels: 0 to %u are needed", config.dma_channels,
                    facts::dma_function_count);
    if (config.alut_entries != 0 && config.alut_entries != facts::alut_entries_two_nt &&
        config.alut_entries != facts::alut_entries_one_nt)
        return fail(error, -EINVAL, "an A-LUT of %u entries: 0, 128 or 256 are possible",
                    config.alut_entries);
    if (config.dma_link_channels > config.dma_channels)
        return fail(error, -EINVAL, "%u DMA channels of the NT port: the chip has %u",
                    config.dma_link_channels, config.dma_channels);
    if (config.state == ChipState::file && config.state_file == nullptr)
        return fail(error, -EINVAL, "no file of registers: a name is needed");
    if (config.nt >= facts::nt_count)
        return fail(error, -EINVAL, "NT port %u: 0 or 1 is needed", config.nt);
    const uint32_t align = config.switches.dma_ring_align;
    if (align == 0 || (align & (align - 1)) != 0 || config.switches.dma_prefetch_unit == 0)
        return fail(error, -EINVAL, "DMA rings aligned to %u, prefetch in units of %u", align,
                    config.switches.dma_prefetch_unit);
    if (config.link_side && config.topology != Topology::root_port)
        return fail(error, -EINVAL, "a link side to sit on is in root-port topology alone");
    if (config.link_side && config.state != ChipState::keep)
        return fail(error, -EINVAL, "a shared chip is restarted from its virtual side alone");
    if ((config.thread_start == nullptr) != (config.thread_join == nullptr))
        return fail(error, -EINVAL, "thread_start and thread_join come together");
    return 0;
}

void take_config(Host &host, const Config &config)
{
    host.config = config;
    memcpy(host.cable_name, config.cable, strlen(config.cable) + 1);
    host.config.cable = host.cable_name;
    if (config.thread_start == nullptr) {
        host.config.thread_start = start_pthread;
        host.config.thread_join = join_pthread;
    }
    host.one_chip = config.topology == Topology::root_port;
    host.side = config.link_side ? Side::link : Side::virt;
    const bool mem = strncmp(config.cable, mem_prefix, sizeof(mem_prefix) - 1) == 0;
    host.ops = mem ? &mem_cable : &socket_cable;
    host.self = {{config.bar2_bytes, config.bar4_bytes}, config.cpu_write_rid, config.cpu_read_rid};
    host.lock = &host.own_lock;
    for (int &fd : host.remote_fd)
        fd = -1;
}

int open_parts(Host &host)
{
    host.own_view = new (std::nothrow) View;
    host.peer_view = new (std::nothrow) View;
    host.next_view = new (std::nothrow) View;
    host.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (host.own_view == nullptr || host.peer_view == nullptr || host.next_view == nullptr ||
        host.wake_fd < 0)
        return -ENOMEM;
    for (unsigned i = 0; i < window_count; i++) {
        if (window_open(host.self.bar_bytes[i], &host.windows[i]) != 0)
            return -ENOMEM;
        const Window &w = host.windows[i];
        const DmaRange range{reinterpret_cast<uintptr_t>(w.base), w.bytes, w.base,
                             RangeKind::window, static_cast<uint8_t>(i)};
        if (dma_memory_add(&host.dma_memory, range) != 0)
            return -ENOMEM;
    }
    return 0;
}

void close_parts(Host *host)
{
    for (Window &w : host->windows)
        window_close(&w);
    for (Block &b : host->blocks)
        if (b.base != nullptr)
            block_destroy(&b);
    dma_memory_close(&host->dma_memory);
    chip_unmap(host->chip);
    chip_unmap(host->peer_chip);
    for (const int fd : {host->chip_fd, host->peer_chip_fd, host->offered_chip_fd, host->wake_fd})
        if (fd >= 0)
            close(fd);
    delete host->own_view;
    delete host->peer_view;
    delete host->next_view;
    delete host;
}

// What firmware does to a card before a driver sees it.
void assign_bars(Host &host)
{
    const uint32_t base = nt_block(*host.chip, host.side);
    if (host.side == Side::link) {
        constexpr uint32_t csr_address = 0xE0000000;
        constexpr uint32_t bus = 1;
        reg_write(*host.chip, base + reg::pci_bar[0], csr_address, 0);
        host.chip->csr[(base + reg::captured_bus) / 4].store(bus);
    }
    for (unsigned i = 0; i < window_count; i++) {
        const uint64_t address = reinterpret_cast<uintptr_t>(host.windows[i].base);
        const uint32_t at = base + reg::pci_bar[window_bars[i]];
        reg_write(*host.chip, at, static_cast<uint32_t>(address), 0);
        reg_write(*host.chip, at + 4, static_cast<uint32_t>(address >> 32), 0);
    }
    const uint32_t command = base + reg::pci_command_status;
    host.chip->csr[command / 4].fetch_or(facts::field::mem_enable.mask());
    for (unsigned channel = 0; channel < facts::dma_function_count; channel++)
        if (owns_dma(host, channel))
            capture_bus(host, channel);
}

// How the EEPROM shares the A-LUT out among the NT ports.
void fit_alut(Host &host)
{
    const uint32_t entries = host.config.alut_entries;
    uint32_t up = get(*host.chip, reg::vs0_upstream);
    for (unsigned nt = 0; nt < facts::nt_count; nt++) {
        const bool has =
            nt == cabled_nt(*host.chip) ? entries != 0 : entries == facts::alut_entries_two_nt;
        up = facts::field::alut_modes[nt].set(up, has);
    }
    host.chip->csr[reg::vs0_upstream / 4].store(up);
}

void fit_setup(Host &host)
{
    const uint32_t base = nt_block(*host.chip, host.side);
    for (unsigned i = 0; i < window_count; i++) {
        const uint32_t at = base + reg::bar_setup(host.side, window_bars[i]);
        const uint64_t setup = ~(host.self.bar_bytes[i] - 1) | 0xC;
        host.chip->csr[at / 4].store(static_cast<uint32_t>(setup));
        host.chip->csr[at / 4 + 1].store(static_cast<uint32_t>(setup >> 32));
    }
}

bool take_former_chip(Host &host)
{
    if (host.offered_chip_fd < 0 || (!host.one_chip && host.config.state != ChipState::keep))
        return false;
    host.chip = chip_map(host.offered_chip_fd);
    if (host.chip == nullptr)
        return false;
    host.chip_fd = host.offered_chip_fd;
    host.offered_chip_fd = -1;
    if (host.config.state != ChipState::keep)
        restart_chip(host);
    return true;
}

void power_on_anew(Host &host)
{
    power_on(*host.chip, power_values(host));
    fit_alut(host);
    host.chip->enabled_at.store(now_ns(host));
    if (host.config.state == ChipState::random)
        scramble(*host.chip, host.config.random_seed, host.one_chip);
    for (uint32_t i = 0; i < host.former.count; i++)
        preset(*host.chip, host.former.words[i].offset, host.former.words[i].value);
    assign_dma(*host.chip, power_values(host));
}

int insert_new_chip(Host &host)
{
    host.chip_fd = chip_create();
    host.chip = host.chip_fd < 0 ? nullptr : chip_map(host.chip_fd);
    if (host.chip == nullptr)
        return -ENOMEM;
    host.chip->nt.store(host.config.nt);
    host.chip->id.store(fresh_id());
    power_on_anew(host);
    return 0;
}

int choose_chip(Host &host)
{
    if (!take_former_chip(host)) {
        const int error = insert_new_chip(host);
        if (error != 0)
            return error;
    }
    settle_in(host);
    for (unsigned channel = 0; channel < facts::dma_function_count; channel++)
        host.dma[channel].open(host, channel);
    return !host.one_chip || take_place(host) ? 0 : -ENOMEM;
}

int start_thread(Host &host, Error *error)
{
    const int code =
        host.config.thread_start(&host.thread, "plx-twin-cable", host.ops->thread, &host);
    return code == 0 ? 0
                     : fail(error, code, "cannot start the cable's thread: %s", strerror(-code));
}

int plug_in(Host &host, Error *error)
{
    int code = open_parts(host);
    if (code != 0)
        return fail(error, code, "no memory for windows of %llu and %llu bytes",
                    static_cast<unsigned long long>(host.self.bar_bytes[0]),
                    static_cast<unsigned long long>(host.self.bar_bytes[1]));
    code = host.ops->join(host, error);
    if (code != 0)
        return code;
    {
        Locked locked(host);
        code = choose_chip(host);
        if (code == 0)
            host.ops->present(host);
    }
    if (code == 0)
        code = start_thread(host, error);
    else
        fail(error, code, "no memory for the chip's registers");
    if (code != 0)
        host.ops->leave(host);
    return code;
}
} // namespace

int fail(Error *error, int code, const char *format, ...)
{
    if (error == nullptr)
        return code;
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return code;
}

uint64_t now_ns(const Host &host)
{
    if (host.config.clock != nullptr)
        return host.config.clock(host.config.clock_ctx);
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

bool on_cable_thread(Host &host)
{
    Locked locked(host);
    return host.thread_known && pthread_equal(host.thread_self, pthread_self()) != 0;
}

PowerOn power_values(const Host &host)
{
    PowerOn values;
    values.dma_channels = host.config.dma_channels;
    values.dma_link_channels = host.config.dma_link_channels;
    values.dma_flr = host.config.switches.dma_flr;
    values.dma_port_assign = host.config.switches.dma_port_assign;
    for (unsigned i = 0; i < window_count; i++) {
        const uint64_t own = host.self.bar_bytes[i];
        const uint64_t theirs = host.one_chip ? host.peer.bar_bytes[i] : 0;
        values.bar_bytes[index_of(host.side)][i] = own;
        values.bar_bytes[index_of(other(host.side))][i] = theirs != 0 ? theirs : own;
    }
    return values;
}

// A down is counted before it begins.
void restart_chip(Host &host)
{
    host.chip->downs.fetch_add(1);
    for (std::atomic<uint32_t> &word : host.chip->csr)
        word.store(0);
    power_on_anew(host);
}

void settle_in(Host &host)
{
    faults_end(host);
    host.chip->train_us.store(host.config.switches.train_us);
    interrupt_rules(*host.chip, host.side, host.config.switches);
    power_up(host);
}

int attach(const Config &config, Host **out, Error *error)
{
    int code = check(config, error);
    if (code != 0)
        return code;
    auto *host = new (std::nothrow) Host;
    if (host == nullptr)
        return fail(error, -ENOMEM, "no memory for a host");
    take_config(*host, config);
    code = dma_memory_open(&host->dma_memory);
    if (code != 0) {
        delete host;
        return fail(error, code, "no memory for a host");
    }
    if (config.state == ChipState::file)
        code = register_file_read(config.state_file, &host->former, error);
    if (code == 0)
        code = plug_in(*host, error);
    register_file_free(&host->former);
    if (code != 0) {
        close_parts(host);
        return code;
    }
    *out = host;
    return 0;
}

void detach(Host *host)
{
    if (host == nullptr)
        return;
    {
        Locked locked(*host);
        host->stop = true;
        wake(*host);
    }
    host->config.thread_join(host->thread);
    host->ops->leave(*host);
    close_parts(host);
}

void power_up(Host &host)
{
    // The EEPROM of this run.
    fit_setup(host);
    // A file says itself how the A-LUT is shared out.
    if (host.side == Side::virt && host.config.state != ChipState::file)
        fit_alut(host);
    assign_bars(host);
}

Bar bar(Host *host, unsigned index)
{
    if (index == 0)
        return {nullptr, facts::bar0_size, false, 0};
    for (unsigned i = 0; i < window_count; i++)
        if (window_bars[i] == index)
            return {host->windows[i].base, host->windows[i].bytes, true,
                    reinterpret_cast<uintptr_t>(host->windows[i].base)};
    return {nullptr, 0, false, 0};
}

namespace
{
/// @return whether there was a slot for it
bool lend(Host &host, const Block &block)
{
    Locked locked(host);
    for (Block &slot : host.blocks) {
        if (slot.base != nullptr)
            continue;
        slot = block;
        follow(host);
        host.ops->tell(host);
        return true;
    }
    return false;
}

DmaRange dma_range(const Block &block)
{
    return {reinterpret_cast<uintptr_t>(block.base), block.bytes,
            static_cast<uint8_t *>(block.base), RangeKind::block, 0};
}
} // namespace

int memory_add(Host *host, size_t bytes, int numa_node, bool want_huge, Memory *out)
{
    if (bytes < size_t{1} << 20 || bytes > size_t{1} << 30 || (bytes & (bytes - 1)) != 0)
        return -EINVAL;
    Block block;
    int error = block_create(bytes, numa_node, want_huge, &block);
    if (error != 0)
        return error;
    const DmaRange range = dma_range(block);
    error = dma_memory_add(&host->dma_memory, range);
    if (error == 0 && lend(*host, block)) {
        *out = {block.base, range.bus, bytes, block.page_bytes};
        return 0;
    }
    if (error == 0)
        dma_memory_remove(&host->dma_memory, range.bus, range.bytes, range.kind);
    block_destroy(&block);
    return error == 0 ? -ENOSPC : error;
}

int memory_remove(Host *host, const Memory &memory)
{
    // The engines first: they hold their lock while they ask for the host's.
    if (dma_memory_remove(&host->dma_memory, memory.bus, memory.bytes, RangeKind::block) != 0)
        return -ENOENT;
    Block block;
    {
        Locked locked(*host);
        for (Block &slot : host->blocks)
            if (slot.base == memory.base) {
                block = slot;
                slot = {};
            }
        follow(*host);
        host->ops->tell(*host);
    }
    block_destroy(&block);
    return 0;
}

bool cable_connected(Host *host)
{
    return host->present.load();
}

void on_cable(Host *host, void (*callback)(void *ctx, bool connected), void *ctx)
{
    const bool inside = on_cable_thread(*host);
    if (!inside)
        pthread_mutex_lock(&host->callback_lock);
    {
        Locked locked(*host);
        host->callback = callback;
        host->callback_ctx = ctx;
    }
    if (!inside)
        pthread_mutex_unlock(&host->callback_lock);
}

} // namespace plx::twin
