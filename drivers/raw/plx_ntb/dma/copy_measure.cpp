// SPDX-License-Identifier: BSD-3-Clause
#include "dma/copy_measure.hpp"

#include <algorithm>

namespace plx::pmd
{

namespace
{

constexpr uint32_t bytes_min = 512, bytes_max = 65536;
/// Enough bytes that the start of an engine costs as little as in a stream.
constexpr uint32_t batch_bytes = 32768;
constexpr uint32_t batch_min = 2;
/// Measurements, of which the fastest counts: disturbances only slow it down.
constexpr unsigned rounds = 3;
constexpr uint64_t patience_ns = 20'000'000;
constexpr unsigned polls_max = 10'000'000;

/// Nanoseconds for @p messages of @p bytes.
uint64_t by_cpu(const CopyBench &b, uint32_t bytes, uint32_t messages)
{
    const uint64_t start = b.now_ns();
    for (uint32_t m = 0; m < messages; m++)
        for (uint32_t left = bytes; left > 0;) {
            const uint32_t n = std::min(left, b.piece);
            b.cpu(b.to, b.from, n);
            left -= n;
        }
    return b.now_ns() - start;
}

/// Waits until @p copies are completed. @return false: the engine failed or is too slow
bool await(const CopyBench &b, uint64_t copies)
{
    const queue::Engine &e = b.engine;
    const uint64_t start = b.now_ns();
    for (unsigned i = 0; i < polls_max; i++) {
        if (e.completed(e.ctx) >= copies)
            return true;
        if (e.failed(e.ctx) || b.now_ns() - start > patience_ns)
            return false;
    }
    return false;
}

/// The same by the engine, with a header line behind each message. @return 0: it failed
uint64_t by_dma(const CopyBench &b, uint32_t bytes, uint32_t messages, uint64_t &given)
{
    const queue::Engine &e = b.engine;
    const uint64_t start = b.now_ns();
    for (uint32_t m = 0; m < messages; m++) {
        for (uint32_t left = bytes; left > 0; given++) {
            const uint32_t n = std::min(left, b.piece);
            e.copy(e.ctx, b.from_iova, b.to_bus, n);
            left -= n;
        }
        e.copy(e.ctx, b.from_iova + 8, b.to_bus + 8, 8);
        e.copy(e.ctx, b.from_iova, b.to_bus, 8);
        given += 2;
    }
    e.start(e.ctx);
    return await(b, given) ? std::max<uint64_t>(b.now_ns() - start, 1) : 0;
}

uint32_t each(uint64_t ns, uint32_t messages)
{
    return static_cast<uint32_t>(std::clamp<uint64_t>(ns / messages, 1, UINT32_MAX));
}

} // namespace

CopyCurve measure_copy(const CopyBench &b)
{
    CopyCurve curve;
    uint64_t given = 0;
    for (uint32_t bytes = bytes_min; bytes <= bytes_max; bytes *= 2) {
        const uint32_t copies = (bytes + b.piece - 1) / b.piece + 2;
        const uint32_t messages =
            std::min(std::max(batch_bytes / bytes, batch_min), b.engine.capacity / copies);
        if (messages == 0)
            break; // no message of the size goes by this engine
        uint64_t cpu = UINT64_MAX, dma = UINT64_MAX;
        for (unsigned round = 0; round < rounds; round++) {
            if (b.engine.room(b.engine.ctx) < messages * copies)
                return {}; // it cannot be halted
            cpu = std::min(cpu, by_cpu(b, bytes, messages));
            const uint64_t ns = by_dma(b, bytes, messages, given);
            if (ns == 0)
                return {};
            dma = std::min(dma, ns);
        }
        curve.points[curve.count++] = {bytes, each(cpu, messages), each(dma, messages)};
    }
    return curve;
}

} // namespace plx::pmd
