// SPDX-License-Identifier: BSD-3-Clause
// main() of the benchmarks on Google's library, whose own knows no --version.
#include <benchmark/benchmark.h>

#include <output.hpp>
#include <version.hpp>

#include <cerrno>

int main(int argc, char **argv)
{
    if (app::show_version(argc, argv))
        return app::finish_output(program_invocation_short_name, 0);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
