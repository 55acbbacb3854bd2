// SPDX-License-Identifier: BSD-3-Clause
// What dump and telemetry say of what was chosen under traffic.
#include "device/trials.hpp"

#include <string>

#include <gtest/gtest.h>

namespace
{

using namespace plx;
using namespace plx::pmd;

constexpr uint64_t one = queue::trial_scale;

std::string words_of(const queue::TrialReport &report, ChoiceNames names)
{
    char text[trial_text_bytes];
    describe(report, names, text, sizeof(text));
    return text;
}

std::string words_of_stores(const queue::TrialReport &report, bool asks_ahead)
{
    char text[trial_text_bytes];
    describe_stores(report, asks_ahead, text, sizeof(text));
    return text;
}

TEST(Trials, SayWhatWasNotTried)
{
    EXPECT_EQ(words_of({.in_force = 1}, cache_hint_names), "clwb, not tried");
    EXPECT_EQ(words_of_stores({.in_force = 0}, true), "plain, not tried");
    EXPECT_EQ(words_of_stores({.in_force = 1}, true), "non_temporal, not tried");
}

TEST(Trials, SayWhatEachChoiceCost)
{
    const queue::TrialReport hints{
        .in_force = 2, .rounds = 9, .by_cost = 24 * one, .relative = {one, 0, one / 4, one / 2}};
    EXPECT_EQ(words_of(hints, cache_hint_names),
              "clflushopt; none 24.0 cycles/line, x0.25 clflushopt, x0.50 cldemote, 9 rounds");
}

TEST(Trials, SayWhetherPlainStoresAskForTheNextBuffer)
{
    queue::TrialReport stores{
        .in_force = 0, .rounds = 3, .by_cost = 10 * one, .relative = {one, 2 * one}};
    const std::string costs = "plain 10.0 cycles/line, x2.00 non_temporal, 3 rounds";
    EXPECT_EQ(words_of_stores(stores, true), "plain; " + costs + "; next buffer asked for");
    EXPECT_EQ(words_of_stores(stores, false), "plain; " + costs + "; next buffer not asked for");
    stores.in_force = 1;
    EXPECT_EQ(words_of_stores(stores, true), "non_temporal; " + costs);
}

TEST(Trials, FitIntoAStringOfTelemetry)
{
    const queue::TrialReport stores{
        .in_force = 0, .rounds = UINT64_MAX, .by_cost = UINT64_MAX, .relative = {one, UINT64_MAX}};
    EXPECT_LT(words_of_stores(stores, false).size(), trial_text_bytes);
}

} // namespace
