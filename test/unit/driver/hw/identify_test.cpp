// SPDX-License-Identifier: BSD-3-Clause
#include "draco2_fixture.hpp"

#include "hw/identify.hpp"

#include <cerrno>
#include <string>

namespace
{

using namespace plx::hw;
using plx::facts::Family;
using plx::facts::Side;

class IdentifyTest : public test::Draco2
{
protected:
    Identity id_;
    Refusal why_;

    int run() { return identify(chip_.io(), &id_, &why_); }
    void expect_refused(int error, const char *word)
    {
        id_.part = 0x4711;
        EXPECT_EQ(run(), error);
        EXPECT_NE(std::string(why_.what).find(word), std::string::npos) << why_.what;
        EXPECT_EQ(id_.part, 0x4711) << "the output was touched";
    }
};

TEST_F(IdentifyTest, ReadsWhatTheChipIsAndWritesNothing)
{
    ASSERT_EQ(run(), 0) << why_.what;
    EXPECT_EQ(id_.nt, 0u);
    EXPECT_EQ(id_.side, Side::virt);
    EXPECT_EQ(id_.family, Family::draco2);
    EXPECT_EQ(id_.part, 0x8749);
    EXPECT_EQ(id_.revision, 0xBA);
    EXPECT_EQ(id_.upstream_port, 0);
    EXPECT_EQ(id_.nt_port, 1);
    EXPECT_EQ(id_.alut_entries, 256u);
    EXPECT_TRUE(chip_.take_writes().empty());
}

TEST_F(IdentifyTest, TellsTheOtherPortAndTheLinkSide)
{
    chip_.csr[0x360] = 0xC0292800;
    chip_.config[0xC8C] = 0x80000001;
    chip_.config[0x00] = chip_.csr[0x3D000] = 0x29598086; // an EEPROM renamed it
    ASSERT_EQ(run(), 0) << why_.what;
    EXPECT_EQ(id_.nt, 1u);
    EXPECT_EQ(id_.side, Side::link);
    EXPECT_EQ(id_.nt_port, 9);
    EXPECT_EQ(id_.alut_entries, 128u);
}

TEST_F(IdentifyTest, DeadFunctionIsNoChip)
{
    chip_.gone = true;
    expect_refused(-ENODEV, "configuration");
    chip_.gone = false;
    chip_.config[0x00] = 0;
    expect_refused(-ENODEV, "configuration");
}

TEST_F(IdentifyTest, NeedsExtendedConfigurationSpace)
{
    chip_.config[0xC8C] = ~0u;
    expect_refused(-ENODEV, "extended");
}

class IdentifyIn256Bytes : public IdentifyTest
{
protected:
    IdentifyIn256Bytes()
    {
        // What a read beyond the end gives.
        for (uint32_t offset = 0x100; offset < 0x1000; offset += 4)
            chip_.config[offset] = ~0u;
        const uint32_t bars[] = {0xF7000000, 0, 0x0000000C, 0x38, 0x0400000C, 0x38};
        for (uint32_t i = 0; i < 6; i++)
            chip_.config[0x10 + 4 * i] = bars[i];
    }
    /// The block shows our BARs and says that it is @p nt_id.
    void mirror_at(uint32_t block, uint32_t nt_id)
    {
        chip_.csr[block] = chip_.config[0x00];
        for (uint32_t i = 0; i < 6; i++)
            chip_.csr[block + 0x10 + 4 * i] = chip_.config[0x10 + 4 * i];
        chip_.csr[block + 0xC8C] = nt_id;
    }
};

TEST_F(IdentifyIn256Bytes, FindsItselfInBar0)
{
    mirror_at(v, 0);
    chip_.csr[l] = 0x87A010B5; // the link endpoint, with BARs of the link bus
    ASSERT_EQ(run(), 0) << why_.what;
    EXPECT_EQ(id_.nt, 0u);
    EXPECT_EQ(id_.side, Side::virt);
    EXPECT_EQ(id_.part, 0x8749);
}

TEST_F(IdentifyIn256Bytes, FindsTheOtherEndpointsToo)
{
    chip_.csr[0x360] = 0xC0292800;
    chip_.config[0x00] = 0x29598086;
    mirror_at(0x3D000, 0x80000001);
    ASSERT_EQ(run(), 0) << why_.what;
    EXPECT_EQ(id_.nt, 1u);
    EXPECT_EQ(id_.side, Side::link);
}

TEST_F(IdentifyIn256Bytes, ReadsExtendedCapabilitiesInBar0)
{
    mirror_at(v, 0);
    chip_.config[0x40] = 0x00030001; // no id in the first 256 bytes
    chip_.csr[v + 0x100] = 0x95010003;
    chip_.csr[v + 0x950] = 0x0001000B;
    chip_.csr[v + 0x954] = 0x00010001;
    chip_.csr[v + 0x958] = 0x879610B5;
    expect_refused(-ENOTSUP, "Capella");
}

TEST_F(IdentifyIn256Bytes, RefusesWhatBar0DoesNotTell)
{
    expect_refused(-ENODEV, "extended");
    mirror_at(v, 0x80000000); // says that it is another
    expect_refused(-ENODEV, "extended");
    mirror_at(v, 0);
    chip_.csr[v + 0x20] = 0x0800000C; // not our BAR4
    expect_refused(-ENODEV, "extended");
    mirror_at(v, 0);
    mirror_at(0x3C000, 1); // two of them
    expect_refused(-ENODEV, "extended");
    chip_.csr.erase(0x3C000);
    EXPECT_EQ(run(), 0) << why_.what;
}

TEST_F(IdentifyTest, NeedsItsOwnBar0)
{
    chip_.csr[v] = 0x87B110B5;
    expect_refused(-ENODEV, "BAR0");
    chip_.csr[v] = ~0u;
    expect_refused(-ENODEV, "BAR0");
}

TEST_F(IdentifyTest, PortsMustMakeSense)
{
    for (const uint32_t value : {0u, ~0u, 0x40000100u, 0x40002000u, 0x40003F00u, 0x4000211Fu}) {
        chip_.csr[0x360] = value;
        expect_refused(-ENODEV, "360");
    }
}

TEST_F(IdentifyTest, RefusesOtherKindsOfChip)
{
    chip_.config[0xE0] = 0x879610B5; // Capella-1
    expect_refused(-ENOTSUP, "Capella");
    chip_.config[0xE0] = 0x97971000; // Capella-2, under the later vendor id
    expect_refused(-ENOTSUP, "Capella");
    chip_.config[0xE0] = 0x874810B5;
    chip_.config[0xE4] = 0xAA;
    expect_refused(-ENOTSUP, "Draco-1");
    chip_.config[0xE4] = 0xBA; // the same part number on later silicon
    EXPECT_EQ(run(), 0);
    EXPECT_EQ(id_.family, Family::draco2);
}

TEST_F(IdentifyTest, FindsTheIdInTheExtendedCapability)
{
    chip_.config[0x40] = 0x00030001; // end of list
    chip_.config[0x100] = 0x95010003;
    chip_.config[0x950] = 0x0001000B;
    chip_.config[0x954] = 0x00010001;
    chip_.config[0x958] = 0x873310B5;
    chip_.config[0x95C] = 0xCA;
    ASSERT_EQ(run(), 0) << why_.what;
    EXPECT_EQ(id_.part, 0x8733);
    EXPECT_EQ(id_.revision, 0xCA);
}

TEST_F(IdentifyTest, FallsBackToTheSubsystemId)
{
    chip_.config[0x34] = 0;
    chip_.config[0x2C] = 0x872510B5;
    chip_.config[0x08] = 0x068000BA;
    ASSERT_EQ(run(), 0) << why_.what;
    EXPECT_EQ(id_.part, 0x8725);
    EXPECT_EQ(id_.family, Family::draco2);
}

TEST_F(IdentifyTest, UnnamedChipIsDrivenAsDraco2)
{
    chip_.config[0x34] = 0;
    ASSERT_EQ(run(), 0) << why_.what;
    EXPECT_EQ(id_.family, Family::unknown);
    EXPECT_EQ(id_.part, 0);
    EXPECT_TRUE(id_.quirks.has(Quirk::alut_unreadable));
}

TEST_F(IdentifyTest, CapabilityListsThatBiteTheirTailEnd)
{
    chip_.config[0x40] = 0x00034001;
    chip_.config[0x100] = 0x10010003;
    EXPECT_EQ(run(), 0);
    EXPECT_EQ(id_.family, Family::unknown);
    EXPECT_LT(chip_.log.size(), 200u);
}

TEST_F(IdentifyTest, WorksWithoutAPlaceForTheReason)
{
    chip_.config[0x00] = 0;
    EXPECT_EQ(identify(chip_.io(), &id_, nullptr), -ENODEV);
}

} // namespace
