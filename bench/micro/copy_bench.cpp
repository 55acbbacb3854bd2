// SPDX-License-Identifier: BSD-3-Clause
// The copy into a window, each compiled variant that this CPU runs, by size.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <vector>

#include "queue/queue.hpp"

namespace
{

constexpr size_t longest = 65536;

void copy(benchmark::State &state, plx::queue::Policy policy)
{
    const auto bytes = static_cast<size_t>(state.range(0));
    const plx::queue::Copy way = plx::queue::select_ops(policy)->copy;
    std::vector<std::byte> from(longest, std::byte{1}), to(longest + 64);
    auto *aligned = reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(to.data()) + 63) &
                                                  ~uintptr_t{63});
    for (auto _ : state) {
        way(aligned, from.data(), bytes);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * state.range(0));
}

BENCHMARK_CAPTURE(copy, plain, plx::queue::Policy::plain)->RangeMultiplier(4)->Range(64, longest);
BENCHMARK_CAPTURE(copy, write_combining, plx::queue::Policy::write_combining)
    ->RangeMultiplier(4)
    ->Range(64, longest);

} // namespace
