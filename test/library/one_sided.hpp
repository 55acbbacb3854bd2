// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations between two channels' ends.
#ifndef ONE_SIDED_HPP
#define ONE_SIDED_HPP

#include "operating.hpp"

/// On workers of both kinds, driven by turns from the test's thread; true: dedicated.
class OneSided : public Operating, public testing::WithParamInterface<bool>
{
protected:
    ntbmsg_endpoint_options options() const override
    {
        ntbmsg_endpoint_options options = worker_options();
        options.dedicated = GetParam();
        return options;
    }
    static ntbmsg_sge piece(std::vector<uint8_t> &memory, size_t at = 0, size_t bytes = SIZE_MAX)
    {
        return {memory.data() + at, static_cast<uint32_t>(std::min(bytes, memory.size() - at)), 0};
    }
    /// Writes until the region's owner serves no more: then it is direct.
    bool becomes_direct(ntbmsg_remote *remote, const ntbmsg_region *region)
    {
        std::vector<uint8_t> byte(1);
        const ntbmsg_sge sge = piece(byte);
        return await([&] {
            const uint64_t before = info_of(region).writes;
            EXPECT_EQ(run(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)).status, 0);
            settle();
            return info_of(region).writes == before;
        });
    }
};

#endif
