// SPDX-License-Identifier: BSD-3-Clause
// Selects the variant of the hot path for this CPU, and finds the cache hints that it supports.
#include <cpuid.h>

#include <rte_cpuflags.h>

#include "queue/queue.hpp"
#include "queue/variants.hpp"

namespace plx::queue
{

namespace
{

bool has(rte_cpu_flag_t flag)
{
    return rte_cpu_get_flag_enabled(flag) == 1;
}

struct Isa {
    const Ops *plain, *write_combining, *direct_store;
};

Isa best_isa()
{
    // BW and VL for the masked byte loads of Body; the operating system's part is in the flags.
    const bool bmi2 = has(RTE_CPUFLAG_BMI2);
    if (bmi2 && has(RTE_CPUFLAG_AVX512F) && has(RTE_CPUFLAG_AVX512BW) && has(RTE_CPUFLAG_AVX512VL))
        return {&avx512::plain_ops, &avx512::write_combining_ops, &avx512::direct_store_ops};
    if (bmi2 && has(RTE_CPUFLAG_AVX2))
        return {&avx2::plain_ops, &avx2::write_combining_ops, &avx2::direct_store_ops};
    return {&sse4::plain_ops, &sse4::write_combining_ops, &sse4::direct_store_ops};
}

} // namespace

const Ops *select_ops(Policy policy)
{
    const Isa isa = best_isa();
    if (policy == Policy::plain)
        return isa.plain;
    return has(RTE_CPUFLAG_MOVDIR64B) ? isa.direct_store : isa.write_combining;
}

bool cache_hint_supported(CacheHint hint)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0)
        return hint == CacheHint::none;
    switch (hint) {
    case CacheHint::none:
        return true;
    case CacheHint::clwb:
        return b >> 24 & 1;
    case CacheHint::clflushopt:
        return b >> 23 & 1;
    case CacheHint::cldemote:
        return c >> 25 & 1;
    }
    return false;
}

} // namespace plx::queue
