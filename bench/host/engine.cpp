// SPDX-License-Identifier: BSD-3-Clause
#include "host/engine.hpp"

#include "host/dma_channel.hpp"
#include "host/traffic.hpp"
#include "kernel/kernels.hpp"

#include <algorithm>
#include <cerrno>

#include <rte_dev.h>
#include <rte_dmadev.h>
#include <rte_errno.h>
#include <rte_memory.h>
#include <rte_rawdev.h>

namespace bench
{

namespace
{

constexpr uint64_t polls_per_clock = 1024;
constexpr uint64_t payload_word = 0x0123456789ABCDEFu;
constexpr uint64_t warm_rounds = 4; ///< of all slots
constexpr uint16_t descriptors = 256;
constexpr size_t page = 4096;

uint64_t load(const Word &word)
{
    return __atomic_load_n(&word.value, __ATOMIC_ACQUIRE);
}
void store(Word &word, uint64_t value)
{
    __atomic_store_n(&word.value, value, __ATOMIC_RELEASE);
}

rte_iova_t bus_of(const void *address)
{
    return reinterpret_cast<uintptr_t>(address);
}

} // namespace

void Engine::open(const Command &command, Shared &shared, Result &result)
{
    close();
    // Behind the source, where turn_over() copies to.
    if (!m_memory.reserve(command.payload + std::min<size_t>(command.payload, page)))
        return fail(result, ENOMEM, "no memory to copy from");
    m_source = m_memory.iova();
    std::fill_n(reinterpret_cast<uint64_t *>(m_memory.data()), command.payload / sizeof(uint64_t),
                payload_word);
    if (!start(result) || !map(shared, result))
        close();
}

bool Engine::start(Result &result)
{
    m_dev = static_cast<int16_t>(rte_dma_get_dev_id_by_name(engine_name));
    if (m_dev < 0) {
        fail(result, ENODEV, "there is no dmadev");
        return false;
    }
    const int rc = start_dma_channel(m_dev, descriptors);
    m_started = rc == 0;
    if (rc != 0)
        fail(result, -rc, "the dmadev does not start");
    return m_started;
}

/// The slots are no memory of EAL's. They are known by their virtual addresses, which no physical
/// address of memory is as high as.
bool Engine::map(Shared &shared, Result &result)
{
    rte_rawdev_info info{};
    const int found = rte_rawdev_info_get(0, &info, 0);
    m_device = info.device;
    m_slots = shared.data;
    m_registered = found == 0 && rte_extmem_register(m_slots, data_bytes, nullptr, 0, page) == 0;
    m_mapped = m_registered && rte_dev_dma_map(m_device, m_slots, bus_of(m_slots), data_bytes) == 0;
    if (!m_mapped)
        fail(result, rte_errno, "the slots cannot be mapped for the engine");
    return m_mapped;
}

void Engine::close()
{
    if (m_started)
        rte_dma_stop(m_dev);
    if (m_mapped)
        rte_dev_dma_unmap(m_device, m_slots, bus_of(m_slots), data_bytes);
    if (m_registered)
        rte_extmem_unregister(m_slots, data_bytes);
    m_memory.release();
    m_started = m_mapped = m_registered = false;
}

/// @return copies done since the last time; a failure is reported
uint16_t Engine::completed(Result &result)
{
    bool error = false;
    const uint16_t done = rte_dma_completed(m_dev, 0, descriptors, nullptr, &error);
    if (error)
        fail(result, EIO, "the engine failed to copy");
    return done;
}

void Engine::copy(const Command &command, Shared &shared, Result &result)
{
    if (!m_mapped)
        return fail(result, ENODEV, "the engine is not open");
    const uint64_t begin = monotonic_ns();
    uint64_t given = 0;
    uint64_t room = command.slot_count; // the far index is looked at when it has to be
    bool more = true;
    for (uint64_t spin = 1; (more || result.count < given) && !result.error; spin++) {
        if (given == room)
            room = load(shared.tail) + command.slot_count;
        const uint64_t end = std::min(room, result.count + command.batch);
        const uint64_t before = given;
        for (; more && given < end; given++)
            rte_dma_copy(m_dev, 0, m_source,
                         bus_of(m_slots) + given % command.slot_count * command.payload,
                         command.payload, 0);
        if (given != before)
            rte_dma_submit(m_dev, 0);
        if (const uint16_t done = completed(result)) {
            result.count += done;
            store(shared.head, result.count);
        }
        if (spin % polls_per_clock != 0 && command.payload < 4 * page)
            continue;
        const uint64_t now = monotonic_ns() - begin;
        more = more && now < command.run_ns;
        if (now > command.bound_ns)
            fail(result, ETIMEDOUT, "the engine does not get on");
    }
    result.ns = monotonic_ns() - begin;
    store(shared.total, result.count + 1);
}

void Engine::turn_over(const Command &command, Result &result)
{
    if (!m_started)
        return fail(result, ENODEV, "the engine is not open");
    const uint64_t begin = monotonic_ns();
    for (uint64_t spin = 1; !result.error; spin++) {
        for (uint32_t i = 0; i < command.batch; i++)
            rte_dma_copy(m_dev, 0, m_source, m_source + command.payload, command.payload, 0);
        rte_dma_submit(m_dev, 0);
        const uint64_t wanted = result.count + command.batch;
        while (result.count < wanted && !result.error) {
            const uint16_t done = completed(result);
            result.count += done;
            if (done == 0 && monotonic_ns() - begin > command.bound_ns)
                fail(result, ETIMEDOUT, "the engine does not get on");
        }
        if (spin % 64 == 0 && monotonic_ns() - begin > command.run_ns)
            break;
    }
    result.ns = monotonic_ns() - begin;
}

void read_engine_copies(const Command &command, Shared &shared, Result &result)
{
    // A run too short for that counts whole.
    const uint64_t warm = warm_rounds * command.slot_count;
    const Kernel &kernel = best_kernel();
    const uint64_t give_up = monotonic_ns() + command.bound_ns;
    uint64_t begin = 0;
    uint64_t begin_at = 0;
    uint64_t end = 0;
    for (uint64_t spin = 1;; spin++) {
        const uint64_t head = load(shared.head);
        if (result.count < head) {
            for (; result.count < head; result.count++)
                result.check += kernel.sum_payload(shared.data + result.count % command.slot_count *
                                                                     command.payload,
                                                   command.payload);
            store(shared.tail, head);
        }
        if (result.count > 0 && (begin == 0 || (begin_at < warm && result.count >= warm))) {
            begin = monotonic_ns();
            begin_at = result.count;
        }
        if (load(shared.total) == result.count + 1)
            break;
        if (spin % polls_per_clock == 0 && monotonic_ns() > give_up)
            return fail(result, ETIMEDOUT, "copies are missing");
    }
    end = monotonic_ns();
    result.ns = begin != 0 ? end - begin : 0;
    result.counted = result.count - begin_at;
    if (result.check != result.count * (command.payload / line_bytes) * payload_word)
        fail(result, EBADMSG, "what came is not what was copied");
}

} // namespace bench
