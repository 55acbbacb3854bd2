// SPDX-License-Identifier: BSD-3-Clause
#include "host/create.hpp"

#include "host/error.hpp"
#include "host/host.hpp"
#include "host/peer.hpp"
#include "host/power.hpp"
#include "host/register_dump.hpp"
#include "host/shared_chip.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <sys/eventfd.h>
#include <unistd.h>

namespace plx::twin
{

namespace
{
using facts::Side;

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
    if (host.wake_fd < 0 && errno == EMFILE)
        return -EMFILE;
    if (host.own_view == nullptr || host.peer_view == nullptr || host.next_view == nullptr ||
        host.wake_fd < 0)
        return -ENOMEM;
    for (unsigned i = 0; i < window_count; i++) {
        errno = 0;
        if (window_open(host.self.bar_bytes[i], &host.windows[i]) != 0)
            return errno == EMFILE ? -EMFILE : -ENOMEM;
        const Window &w = host.windows[i];
        const DmaRange range{w.bus, w.bytes, w.base, RangeKind::window, static_cast<uint8_t>(i)};
        if (dma_memory_add(&host.dma_memory, range) != 0)
            return -ENOMEM;
    }
    return 0;
}

void identify_chip(Host &host)
{
    host.chip->nt.store(host.config.nt);
    host.chip->id.store(fresh_id());
}

bool take_former_chip(Host &host)
{
    if (host.offered_chip_fd < 0 || (!host.one_chip && host.config.state != ChipState::keep))
        return false;
    host.chip = chip_map(host.offered_chip_fd);
    if (host.chip == nullptr)
        return false;
    const bool usable = is_usable(host, *host.chip);
    if (!usable)
        fprintf(stderr, "plx twin: the chip found at the cable %s is of no use: reset\n",
                host.cable_name);
    if (!usable && !host.one_chip) {
        chip_unmap(host.chip);
        host.chip = nullptr;
        return false; // a new one, which no other process has
    }
    host.chip_fd = host.offered_chip_fd;
    host.offered_chip_fd = -1;
    if (!usable)
        identify_chip(host);
    if (!usable || host.config.state != ChipState::keep)
        restart_chip(host);
    return true;
}

int insert_new_chip(Host &host)
{
    host.chip_fd = chip_create();
    host.chip = host.chip_fd < 0 ? nullptr : chip_map(host.chip_fd);
    if (host.chip == nullptr)
        return -ENOMEM;
    identify_chip(host);
    power_on_anew(host);
    return 0;
}
} // namespace

int choose_chip(Host &host)
{
    if (!take_former_chip(host)) {
        const int error = insert_new_chip(host);
        if (error != 0)
            return error;
    }
    settle_in(host);
    for (unsigned channel = 0; channel < facts::dma_function_count; channel++)
        host.dma[channel].open(host, *host.chip, channel);
    return !host.one_chip || take_place(host) ? 0 : -ENOMEM;
}

int host_create(const Config &config, const CableOps &cable, Host **out, Error *error)
{
    auto *host = new (std::nothrow) Host;
    if (host == nullptr)
        return fail(error, -ENOMEM, "no memory for a host");
    take_config(*host, config);
    host->ops = &cable;
    int code = dma_memory_open(&host->dma_memory);
    if (code != 0) {
        delete host;
        return fail(error, code, "no memory for a host");
    }
    code = open_parts(*host);
    if (code == -EMFILE)
        fail_for_descriptors(error, host->cable_name);
    else if (code != 0)
        fail(error, code, "no memory for windows of %llu and %llu bytes",
             static_cast<unsigned long long>(host->self.bar_bytes[0]),
             static_cast<unsigned long long>(host->self.bar_bytes[1]));
    if (code == 0 && config.state == ChipState::file)
        code = register_dump_read(config.state_file, &host->former, error);
    if (code != 0) {
        host_destroy(host);
        return code;
    }
    *out = host;
    return 0;
}

void host_destroy(Host *host)
{
    register_dump_free(&host->former);
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

Bar bar(Host *host, unsigned index)
{
    if (index == 0)
        return {nullptr, facts::bar0_size, false, 0};
    for (unsigned i = 0; i < window_count; i++)
        if (window_bars[i] == index)
            return {host->windows[i].base, host->windows[i].bytes, true, host->windows[i].bus};
    return {nullptr, 0, false, 0};
}

} // namespace plx::twin
