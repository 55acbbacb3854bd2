// SPDX-License-Identifier: BSD-3-Clause
// What the applications do for each message beside sending it: it must not spoil what they measure.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <vector>

#include <crc32c.hpp>
#include <histogram.hpp>

namespace
{

void crc32c(benchmark::State &state)
{
    const std::vector<std::byte> data(static_cast<size_t>(state.range(0)), std::byte{7});
    for (auto _ : state)
        benchmark::DoNotOptimize(app::crc32c(data.data(), data.size()));
    state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * state.range(0));
}
BENCHMARK(crc32c)->Arg(64)->Arg(1518)->Arg(65536);

void histogram_record(benchmark::State &state)
{
    app::Histogram histogram;
    uint64_t value = 1;
    for (auto _ : state) {
        value = value * 6364136223846793005U + 1442695040888963407U;
        histogram.record(value >> 40);
    }
    benchmark::DoNotOptimize(histogram.quantile(0.99));
}
BENCHMARK(histogram_record);

} // namespace
