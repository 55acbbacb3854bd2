// SPDX-License-Identifier: BSD-3-Clause
// A host that is alone on its cable, and its registers.
#ifndef TEST_TWIN_ONE_CHIP_HPP
#define TEST_TWIN_ONE_CHIP_HPP

#include "bench_pair.hpp"

namespace plx::test
{

class OneChip : public MemPair
{
protected:
    void SetUp() override
    {
        twin::Error error{};
        ASSERT_EQ(twin::attach(config, &a, &error), 0) << error.text;
    }
    uint32_t get(uint32_t offset) { return twin::csr_read32(a, offset); }
    void put(uint32_t offset, uint32_t value) { twin::csr_write32(a, offset, value); }
};

} // namespace plx::test

#endif
