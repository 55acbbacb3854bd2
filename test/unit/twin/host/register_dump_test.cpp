// SPDX-License-Identifier: BSD-3-Clause
// A card's registers, as plx-doctor prints them, for the state of a chip at power-on.
#include "bench_pair.hpp"

#include <cerrno>
#include <cstdio>
#include <string>

#include <unistd.h>

using namespace plx;
using namespace plx::test;

namespace
{

class TwinRegisterFile : public MemPair
{
protected:
    void SetUp() override
    {
        close(mkstemp(path_));
        config.state = twin::ChipState::file;
        config.state_file = path_;
    }
    void TearDown() override
    {
        MemPair::TearDown();
        unlink(path_);
    }
    int attach_with(const std::string &text)
    {
        FILE *out = fopen(path_, "w");
        fputs(text.c_str(), out);
        fclose(out);
        return twin::attach(config, &a, &error_);
    }
    std::string said() const { return error_.text; }
    uint32_t get(uint32_t offset) { return twin::csr_read32(a, offset); }

    static constexpr char heading[] = "# plx-registers 1 part 8749 function 0000:05:00.0\n";
    char path_[32] = "/tmp/plx-registers.XXXXXX";
    twin::Error error_{};
};

TEST_F(TwinRegisterFile, GivesRegistersTheirValues)
{
    ASSERT_EQ(attach_with(std::string(heading) + "00360 C0292800 port0 VS0_UPSTREAM\n"
                                                 "\n# a remark\n"
                                                 "3ec70 12345678 NT0-virtual SPAD[1]\n"
                                                 "3ec54 0000fffe NT0-virtual DB_VIRT_MASK_SET\n"
                                                 "3e0d4 F000000C NT0-virtual BAR2_SETUP_VIRT\n"
                                                 "15ffc 00000001 nothing is there"),
              0)
        << said();
    EXPECT_EQ(get(reg::vs0_upstream), 0xC0292800u);
    EXPECT_EQ(get(virt_block + reg::spad[1]), 0x12345678u);
    EXPECT_EQ(get(virt_block + reg::db_virt_mask_set), 0xFFFEu);
    EXPECT_EQ(get(virt_block + reg::bar_setup(Side::virt, 2)), 0xE000000Cu) << "the twin's own";
    EXPECT_EQ(get(0x15ffc), 0u);
    EXPECT_EQ(get(reg::vs_debug), 0x03000000u) << "as after a reset";
}

TEST_F(TwinRegisterFile, KeepsThePortThatTheCableHangsOn)
{
    ASSERT_EQ(attach_with(std::string(heading) + "00360 00000100 port0 VS0_UPSTREAM\n"), 0);
    EXPECT_EQ(get(reg::vs0_upstream), 0x40002100u);
}

TEST_F(TwinRegisterFile, SaysWhatIsWrongAndWhere)
{
    const struct {
        std::string text;
        const char *line;
    } wrong[] = {
        {"", "line 1"},
        {"00360 40002100 port0\n", "line 1"},
        {"# plx-registers 2 part\n", "line 1"},
        {std::string(heading) + "00360\n", "line 2"},
        {std::string(heading) + "00360 x\n", "line 2"},
        {std::string(heading) + "\n00361 40002100\n", "line 3"},
        {std::string(heading) + "40000 40002100\n", "line 2"},
        {std::string(heading) + "00360 140002100\n", "line 2"},
        {std::string(heading) + "-0360 40002100\n", "line 2"},
        {std::string(heading) + "00360 0x400021\n", "line 2"},
        {std::string(heading) + "ffffffffffffffffffff 1\n", "line 2"},
        {std::string(heading) + "00360 40002100 " + std::string(400, 'x') + "\n", "line 2"},
    };
    for (const auto &row : wrong) {
        EXPECT_EQ(attach_with(row.text), -EINVAL) << row.text;
        EXPECT_NE(said().find(row.line), std::string::npos) << said();
    }
    std::string endless = heading;
    for (unsigned i = 0; i <= facts::bar0_size / 4; ++i)
        endless += "00360 40002100\n";
    EXPECT_EQ(attach_with(endless), -EFBIG);
    unlink(path_);
    EXPECT_EQ(twin::attach(config, &a, &error_), -ENOENT);
    EXPECT_NE(said().find(path_), std::string::npos);
    config.state_file = nullptr;
    EXPECT_EQ(twin::attach(config, &a, &error_), -EINVAL);
}

} // namespace
