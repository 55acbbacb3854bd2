// SPDX-License-Identifier: BSD-3-Clause
// A recording border that answers as a PEX 8749 with NT0 on port 1 and the whole A-LUT for it.
// Offsets are written out, so that a slip in the tables shows in the tests.
#ifndef TEST_UNIT_HW_DRACO2_FIXTURE_HPP
#define TEST_UNIT_HW_DRACO2_FIXTURE_HPP

#include "recording_reg_io.hpp"

#include <gtest/gtest.h>

namespace test
{

class Draco2 : public ::testing::Test
{
protected:
    static constexpr uint32_t v = 0x3E000; ///< NT0 virtual block
    static constexpr uint32_t l = 0x3F000; ///< NT0 link block

    RecordingRegIo chip_;

    Draco2()
    {
        chip_.config[0x00] = 0x87B010B5;
        chip_.config[0x04] = 0x00100006;
        chip_.config[0x34] = 0x40;
        chip_.config[0x40] = 0x0003C801; // power management, then
        chip_.config[0xC8] = 0x00000009; // vendor-specific, the last
        chip_.config[0xE0] = 0x874910B5;
        chip_.config[0xE4] = 0x000000BA;
        chip_.config[0xC8C] = 0; // NT0, virtual
        chip_.csr[v] = 0x87B010B5;
        chip_.csr[0x360] = 0x40002100;
        chip_.csr[v + 0xC90] = 0x050E; // our reads come from 05:01.6
    }
    void without_alut() { chip_.csr[0x360] = 0x00002100; }
};

} // namespace test

#endif
