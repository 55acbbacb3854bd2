// SPDX-License-Identifier: BSD-3-Clause
// Small parts of the queue pair that bring-up and sleepers use.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <vector>

#include "queue/queue.hpp"
#include "queue/state.hpp"
#include "queue/wire.hpp"

namespace
{

struct alignas(64) Line {
    std::byte bytes[plx::wire::line_bytes];
};

/// Tagging a ring anew, which each bring-up does with every queue.
void prepare_ring(benchmark::State &state)
{
    const auto lines = static_cast<uint32_t>(state.range(0));
    std::vector<Line> ring(lines);
    uint32_t base = 1;
    for (auto _ : state) {
        plx::queue::prepare_ring(ring[0].bytes, lines, base++);
        benchmark::ClobberMemory();
    }
    state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * state.range(0));
}
BENCHMARK(prepare_ring)->Arg(512)->Arg(4096)->Arg(65536);

/// Buffers of a long message: a division that is none.
void buffers_of_a_message(benchmark::State &state)
{
    const plx::queue::Divider per_buffer(2048);
    uint32_t bytes = 0;
    for (auto _ : state) {
        bytes = (bytes + 1517) & 0xffffff;
        benchmark::DoNotOptimize(per_buffer.ceil(bytes));
    }
}
BENCHMARK(buffers_of_a_message);

} // namespace
