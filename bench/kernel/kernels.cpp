// SPDX-License-Identifier: BSD-3-Clause
#include "kernel/kernels.hpp"

#include <cpuid.h>

namespace bench
{

namespace
{

// CPUID leaf 7, subleaf 0.
constexpr unsigned ebx_clflushopt = 1u << 23;
constexpr unsigned ebx_clwb = 1u << 24;
constexpr unsigned ecx_cldemote = 1u << 25;

struct Features {
    unsigned ebx = 0;
    unsigned ecx = 0;

    Features()
    {
        unsigned eax = 0;
        unsigned edx = 0;
        __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
    }
};

} // namespace

const Kernel &best_kernel()
{
    // These builtins also ask whether the operating system saves the wide registers.
    if (__builtin_cpu_supports("avx512f"))
        return kernel_avx512;
    return __builtin_cpu_supports("avx2") ? kernel_avx2 : kernel_sse2;
}

std::vector<Writer> supported_writers()
{
    std::vector<Writer> writers{Writer::plain, Writer::prefetchw, Writer::nontemporal};
    if (Features().ecx & ecx_cldemote)
        writers.push_back(Writer::cldemote);
    return writers;
}

std::vector<Reader> supported_readers()
{
    const Features features;
    std::vector<Reader> readers{Reader::plain};
    if (features.ebx & ebx_clwb)
        readers.push_back(Reader::clwb);
    if (features.ebx & ebx_clflushopt)
        readers.push_back(Reader::clflushopt);
    if (features.ecx & ecx_cldemote)
        readers.push_back(Reader::cldemote);
    return readers;
}

std::string_view name_of(Writer writer)
{
    constexpr std::string_view names[] = {"plain", "cldemote", "prefetchw", "nontemporal"};
    return names[static_cast<unsigned>(writer)];
}

std::string_view name_of(Reader reader)
{
    constexpr std::string_view names[] = {"plain", "clwb", "clflushopt", "cldemote"};
    return names[static_cast<unsigned>(reader)];
}

std::string_view name_of(PingForm form)
{
    constexpr std::string_view names[] = {"word", "line by words", "line by vector"};
    return names[static_cast<unsigned>(form)];
}

} // namespace bench
