// SPDX-License-Identifier: BSD-3-Clause
#include "draco2_fixture.hpp"

#include "hw/dump.hpp"

#include <cerrno>
#include <cstdlib>
#include <string>

namespace
{

using namespace plx::hw;
using test::Access;

class DumpTest : public test::Draco2
{
protected:
    std::string run(const Identity &id, void (*print)(const RegIo &, const Identity &, FILE *))
    {
        char *text = nullptr;
        size_t bytes = 0;
        FILE *out = open_memstream(&text, &bytes);
        print(chip_.io(), id, out);
        fclose(out);
        std::string result(text, bytes);
        free(text);
        return result;
    }
    Identity id()
    {
        Identity found;
        EXPECT_EQ(identify(chip_.io(), &found, nullptr), 0);
        chip_.take();
        return found;
    }
    bool was_read(uint32_t from, uint32_t to) const
    {
        for (const Access &a : chip_.log)
            if (a.kind == Access::read && a.offset >= from && a.offset < to)
                return true;
        return false;
    }
};

TEST_F(DumpTest, PrintsNamesValuesAndFields)
{
    chip_.csr[v + 0x78] = 0x00830000;
    chip_.csr[0x21000] = 0x87D010B5;
    const std::string text = run(id(), dump);
    EXPECT_NE(text.find("Part 8749 revision ba (Draco-2), NT0 virtual side, port 1"),
              std::string::npos);
    EXPECT_NE(text.find("3e078 PCIE_LINK_CTL_STATUS = 00830000"), std::string::npos);
    EXPECT_NE(text.find("LINK_WIDTH                   0x8"), std::string::npos);
    EXPECT_NE(text.find("00360 VS0_UPSTREAM = 40002100"), std::string::npos);
    EXPECT_NE(text.find("3fdf0 REQ_ID_LUT_LINK[15]"), std::string::npos);
    EXPECT_NE(text.find("21238 DMA_CTRL_STATUS"), std::string::npos);
    EXPECT_NE(text.find("DMA function 1: absent"), std::string::npos);
}

TEST_F(DumpTest, WritesNothingAndReadsNoAlutRam)
{
    const std::string text = run(id(), dump);
    EXPECT_FALSE(was_read(0x38000, 0x3C000));
    EXPECT_NE(text.find("A-LUT RAM at 3a000: not read"), std::string::npos);
    EXPECT_FALSE(was_read(0x3E4, 0x3E8)) << "the monitor's FIFO";
    EXPECT_TRUE(was_read(0x360, 0x364));
    EXPECT_TRUE(chip_.take_writes().empty());
}

TEST_F(DumpTest, ReadsAlutRamWhereItMayBeRead)
{
    Identity other = id();
    other.quirks = Quirks(0);
    run(other, dump);
    EXPECT_TRUE(was_read(0x3A000, 0x3BA00));
}

TEST_F(DumpTest, StaysInsideTheRegisters)
{
    run(id(), dump);
    for (const Access &a : chip_.log) {
        EXPECT_LT(a.offset, 0x40000u);
        EXPECT_EQ(a.offset % 4, 0u);
    }
}

TEST_F(DumpTest, SecondPortHasItsPatternInTheSecondStation)
{
    chip_.csr[0x360] = 0xC0290801; // NT1 on port 9, upstream port 1
    chip_.config[0xC8C] = 1;
    chip_.csr[0x3C000] = 0x87B010B5;
    const std::string text = run(id(), dump);
    EXPECT_NE(text.find("0820c PHY_TEST_PATTERN[0]"), std::string::npos);
    EXPECT_NE(text.find("NT1 link block"), std::string::npos);
}

TEST_F(DumpTest, QuirksOfTheChipAreShown)
{
    const auto print = [](const RegIo &, const Identity &who, FILE *out) { dump_quirks(who, out); };
    const std::string text = run(id(), print);
    EXPECT_NE(text.find("E6: "), std::string::npos);
    EXPECT_EQ(text.find("E5: "), std::string::npos);
    EXPECT_EQ(text.find("E1: "), std::string::npos);
}

struct Found {
    unsigned count = 0;
    uint32_t spad7 = 0;
};

void find(const RegValue &value, void *arg)
{
    auto *found = static_cast<Found *>(arg);
    ++found->count;
    if (value.name == "SPAD" && value.index == 7)
        found->spad7 = value.value;
}

TEST_F(DumpTest, ReadsOnePartAtATime)
{
    chip_.csr[v + 0xC88] = 0x12345678;
    const Identity chip = id();
    Found found;
    EXPECT_EQ(read_part(chip_.io(), chip, "nt_virtual", find, &found), 0);
    EXPECT_EQ(found.spad7, 0x12345678u);
    EXPECT_GT(found.count, 60u);
    EXPECT_FALSE(was_read(0, v));
    for (const std::string_view part : dump_parts) {
        found = {};
        EXPECT_EQ(read_part(chip_.io(), chip, part, find, &found), 0) << part;
        EXPECT_NE(found.count, 0u) << part;
    }
    for (const std::string_view none : {"", "dma", "dma4", "dma00", "alut", "nt_virtual "})
        EXPECT_EQ(read_part(chip_.io(), chip, none, find, &found), -EINVAL) << none;
}

} // namespace
