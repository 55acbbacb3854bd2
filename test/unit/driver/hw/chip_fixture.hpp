// SPDX-License-Identifier: BSD-3-Clause
// A chip that is joined back to back, over the recording border, and sequences that it writes.
#ifndef TEST_UNIT_HW_CHIP_FIXTURE_HPP
#define TEST_UNIT_HW_CHIP_FIXTURE_HPP

#include "draco2_fixture.hpp"

#include "hw/chip.hpp"

#include <vector>

namespace test
{

inline constexpr uint64_t mib = uint64_t{1} << 20;

class ChipTest : public Draco2
{
protected:
    plx::hw::Chip ntb_;
    plx::hw::Refusal why_;
    plx::hw::ChipConfig config_;

    ChipTest()
    {
        config_.topology = plx::hw::Topology::back_to_back;
        config_.bar2_bytes = 512 * mib;
        config_.bar4_bytes = 4 * mib;
    }
    void open()
    {
        ASSERT_EQ(ntb_.open(chip_.io(), config_, &why_), 0) << why_.what;
        chip_.take();
    }
    int set(unsigned window, std::vector<plx::hw::Piece> pieces,
            uint32_t rights = plx::hw::rights_all)
    {
        return ntb_.window_set(window, pieces.data(), static_cast<unsigned>(pieces.size()), rights,
                               &why_);
    }
    Log denied(uint32_t array, unsigned entries) const
    {
        Log log;
        for (uint32_t i = 0; i < entries; i++)
            log.push_back(w(array + i / 128 * 0x1000 + 0x800 + i % 128 * 4, 0));
        return log;
    }
    // Requester-ID tables: the link side as a peer without a bus number comes, ours as given.
    Log luts() const
    {
        Log log;
        for (uint32_t k = 0; k < 16; k++)
            log.push_back(w(l + 0xDB4 + 4 * k, 0x00010001 | (2 * k + 1) << 19 | 2 * k << 3));
        for (uint32_t k = 0; k < 16; k++)
            log.push_back(w(v + 0xD94 + 4 * k, k == 0 ? 0x05090001 : 0));
        return log;
    }
    // Up to the windows.
    Log prologue() const
    {
        Log log = {w(0xA30, 0x10),          w(l + 0xE4, 3),          w(l + 0x10, 4),
                   w(l + 0x14, 0x80000000), w(v + 0xC3C, 0),         w(v + 0xC40, 0x40000000),
                   w(v + 0xC44, 0),         w(v + 0xC48, 0x80000000)};
        if (ntb_.identity().alut_entries != 0)
            log.push_back(w(l + 0xC94, 0));
        append(log, luts());
        return log;
    }
    const Log closed_shared_ = {w(l + 0xF4, 0), w(l + 0xF0, 0xC)};
    const Log closed_data_ = {w(l + 0xEC, 0), w(l + 0xE8, 0xC)};
    const Log commands_ = {{Access::config_write, 0x04, 0x6}, w(l + 0x04, 6)};
};

} // namespace test

#endif
