// SPDX-License-Identifier: BSD-3-Clause
// Every compiled variant of the hot path, and which of them this CPU can run.
#ifndef TEST_QUEUE_EVERY_OPS_HPP
#define TEST_QUEUE_EVERY_OPS_HPP

#include <array>
#include <string>

#include <gtest/gtest.h>

#include <rte_cpuflags.h>

#include "queue/variants.hpp"

namespace test_queue
{

inline bool has(rte_cpu_flag_t flag)
{
    return rte_cpu_get_flag_enabled(flag) == 1;
}

inline bool runs_here(const std::string &name)
{
    const bool avx512 = name.find("avx512") != name.npos, avx2 = name.find("avx2") != name.npos;
    if ((avx2 || avx512) && !has(RTE_CPUFLAG_BMI2))
        return false;
    if (avx512 &&
        !(has(RTE_CPUFLAG_AVX512F) && has(RTE_CPUFLAG_AVX512BW) && has(RTE_CPUFLAG_AVX512VL)))
        return false;
    if (avx2 && !has(RTE_CPUFLAG_AVX2))
        return false;
    return name.find("movdir64b") == name.npos || has(RTE_CPUFLAG_MOVDIR64B);
}

inline const std::array all_ops{
    &plx::queue::sse4::plain_ops,           &plx::queue::avx2::plain_ops,
    &plx::queue::avx512::plain_ops,         &plx::queue::sse4::write_combining_ops,
    &plx::queue::avx2::write_combining_ops, &plx::queue::avx512::write_combining_ops,
    &plx::queue::sse4::direct_store_ops,    &plx::queue::avx2::direct_store_ops,
    &plx::queue::avx512::direct_store_ops};

/// Tests of one of them, left out where this CPU cannot run it.
class OfOps : public testing::TestWithParam<const plx::queue::Ops *>
{
protected:
    void SetUp() override
    {
        if (!runs_here(GetParam()->name))
            GTEST_SKIP() << "this CPU cannot run " << GetParam()->name;
    }
    const plx::queue::Ops &ops() const { return *GetParam(); }
};

/// For INSTANTIATE_TEST_SUITE_P.
inline std::string ops_name(const testing::TestParamInfo<const plx::queue::Ops *> &info)
{
    std::string name = info.param->name;
    name[name.find('/')] = '_';
    return name;
}

} // namespace test_queue

#endif
