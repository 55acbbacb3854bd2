// SPDX-License-Identifier: BSD-3-Clause
#include "hw/quirks.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace
{

using namespace plx::hw;
using plx::facts::Family;

TEST(Quirks, EveryErratumHasARowWithSourceAndAnswer)
{
    std::set<unsigned> numbers;
    for (const QuirkRow &row : quirk_rows) {
        numbers.insert(row.number);
        EXPECT_GT(std::strlen(row.what), 0u);
        EXPECT_GT(std::strlen(row.source), 0u);
        EXPECT_GT(std::strlen(row.answer), 0u);
    }
    EXPECT_EQ(numbers.size(), 29u);
    EXPECT_EQ(*numbers.begin(), 1u);
    EXPECT_EQ(*numbers.rbegin(), 29u);
}

TEST(Quirks, EveryBitHasOneRowAndSomeFamily)
{
    uint32_t rows = 0;
    for (const QuirkRow &row : quirk_rows) {
        const auto bit = static_cast<uint32_t>(row.bit);
        EXPECT_EQ(rows & bit, 0u) << "E" << row.number;
        rows |= bit;
    }
    uint32_t families = 0;
    for (const auto &f : plx::facts::families)
        families |= quirks_of(f.family).bits();
    EXPECT_EQ(rows, families);
}

TEST(Quirks, FamiliesDiffer)
{
    EXPECT_TRUE(quirks_of(Family::draco1).has(Quirk::no_nt_port_id));
    EXPECT_TRUE(quirks_of(Family::draco1).has(Quirk::forbidden_csrs));
    EXPECT_FALSE(quirks_of(Family::draco2).has(Quirk::no_nt_port_id));
    EXPECT_FALSE(quirks_of(Family::draco2).has(Quirk::indexed_lut));
    EXPECT_TRUE(quirks_of(Family::draco2).has(Quirk::alut_unreadable));
    EXPECT_TRUE(quirks_of(Family::capella1).has(Quirk::indexed_lut));
    EXPECT_TRUE(quirks_of(Family::capella2).has(Quirk::indexed_lut));
    EXPECT_FALSE(quirks_of(Family::scout).has(Quirk::no_nt_port_id));
    EXPECT_EQ(quirks_of(Family::unknown).bits(), quirks_of(Family::draco2).bits());
    for (const auto &f : plx::facts::families)
        EXPECT_TRUE(quirks_of(f.family).has(Quirk::link_loss_wipes)) << f.name;
}

// The facts of a family and its quirks are two tables that must say the same.
TEST(Quirks, AgreeWithTheFactsOfTheFamily)
{
    for (const auto &f : plx::facts::families) {
        EXPECT_EQ(quirks_of(f.family).has(Quirk::no_nt_port_id), !f.has_nt_port_id) << f.name;
        EXPECT_EQ(quirks_of(f.family).has(Quirk::indexed_lut),
                  f.lut == plx::facts::LutType::indexed)
            << f.name;
    }
}

} // namespace
