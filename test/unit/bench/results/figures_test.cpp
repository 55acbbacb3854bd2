// SPDX-License-Identifier: BSD-3-Clause
#include "results/figures.hpp"

#include <gtest/gtest.h>

using namespace bench;

namespace
{

const Figure &figure(std::string_view name)
{
    for (const Figure &f : figures)
        if (f.name == name)
            return f;
    ADD_FAILURE() << "no figure " << name;
    return figures[0];
}

size_t measure(std::string_view name)
{
    for (size_t i = 0; i < measure_count; i++)
        if (measures[i].name == name)
            return i;
    ADD_FAILURE() << "no measure " << name;
    return 0;
}

Pair pair_of(double value, double limit, Class placement = Class::ccx, const char *disturbed = "")
{
    return {value, limit, "some form", 100, 100, placement, {}, disturbed};
}

} // namespace

TEST(Figures, EveryFigureOfPairsNamesAMeasure)
{
    for (const Figure &f : figures)
        if (f.source == Source::value || f.source == Source::beyond_limit) {
            SCOPED_TRACE(f.name);
            measure(f.measure);
        }
}

TEST(Figures, TheMedianOfThePairsCounts)
{
    Findings findings;
    findings.pairs[measure("rtt.8")] = {pair_of(150, 100), pair_of(170, 100), pair_of(900, 100)};
    const Row row = row_of(figure("qp.rtt.8"), findings);
    EXPECT_DOUBLE_EQ(*row.value, 170);
    EXPECT_DOUBLE_EQ(*row.ratio, 1.7);
    EXPECT_EQ(row.verdict, "reached");
}

TEST(Figures, TheOverheadIsTakenPairByPair)
{
    Findings findings;
    findings.pairs[measure("rtt.8")] = {pair_of(190, 100), pair_of(200, 125), pair_of(300, 150)};
    const Row row = row_of(figure("qp.ovh.8"), findings);
    EXPECT_DOUBLE_EQ(*row.value, 90);
    EXPECT_EQ(row.verdict, "missed");
}

TEST(Figures, RatesAreJudgedTheOtherWayRound)
{
    Findings findings;
    findings.pairs[measure("rate.32")] = {pair_of(150e6, 360e6)};
    EXPECT_EQ(row_of(figure("qp.rate.32"), findings).verdict, "reached");
    findings.pairs[measure("rate.32")] = {pair_of(100e6, 360e6)};
    const Row row = row_of(figure("qp.rate.32"), findings);
    EXPECT_EQ(row.verdict, "missed");
    EXPECT_DOUBLE_EQ(*row.value, 100);
}

TEST(Figures, AFigureOfChannelsIsHeldAgainstTheQueue)
{
    for (const Measure &m : measures)
        if (m.against != Measure::machine) {
            SCOPED_TRACE(m.name);
            // What is built in place is held against the same way, copied.
            EXPECT_TRUE(m.in_place ? m.against == m.used : m.against < m.used);
            EXPECT_LE(m.used, m.shape.channels);
        }
    Findings findings;
    findings.pairs[measure("channel.rtt.64")] = {pair_of(380, 350)};
    EXPECT_EQ(row_of(figure("chan.rtt.64"), findings).verdict, "reached");
    findings.pairs[measure("channel.rtt.64")] = {pair_of(420, 350)};
    EXPECT_EQ(row_of(figure("chan.rtt.64"), findings).verdict, "missed");
}

TEST(Figures, ARateOfWritesIsJudgedByItself)
{
    Findings findings;
    findings.pairs[measure("write.rate.64")] = {pair_of(101e6, 300e6)};
    EXPECT_EQ(row_of(figure("write.rate.64"), findings).verdict, "reached");
    findings.pairs[measure("write.rate.64")] = {pair_of(99e6, 101e6)};
    EXPECT_EQ(row_of(figure("write.rate.64"), findings).verdict, "missed");
}

TEST(Figures, TheClassWithMostPairsThatCountComesFirst)
{
    Findings findings;
    findings.pairs[measure("rtt.8")] = {pair_of(900, 500, Class::far),
                                        pair_of(910, 500, Class::far), pair_of(150, 100)};
    const Row row = row_of(figure("qp.rtt.8"), findings);
    EXPECT_EQ(*row.placement, Class::far);
    EXPECT_DOUBLE_EQ(*row.value, 905);
}

TEST(Figures, OfEquallyManyPairsTheNearerClassComesFirst)
{
    Findings findings;
    findings.pairs[measure("rtt.8")] = {pair_of(900, 500, Class::far),
                                        pair_of(400, 300, Class::other)};
    EXPECT_EQ(*row_of(figure("qp.rtt.8"), findings).placement, Class::other);
}

TEST(Figures, EachClassHasItsOwnReach)
{
    Findings findings;
    std::vector<Pair> &pairs = findings.pairs[measure("rate.64")];
    const Figure &rate = figure("qp.rate.64");
    pairs = {pair_of(66e6, 100e6, Class::ccx), pair_of(66e6, 100e6, Class::far),
             pair_of(66e6, 100e6, Class::smt)};
    EXPECT_EQ(row_in_class(rate, findings, Class::ccx).verdict, "reached"); // 0.65
    EXPECT_EQ(row_in_class(rate, findings, Class::far).verdict, "missed");  // 0.8
    EXPECT_EQ(row_in_class(rate, findings, Class::smt).verdict, "shown");
    EXPECT_EQ(row_in_class(rate, findings, Class::other).verdict, "missing");
}

TEST(Figures, OneClassWithEnoughPairsIsEnough)
{
    std::vector<Pair> pairs = {pair_of(1, 1, Class::ccx), pair_of(1, 1, Class::far),
                               pair_of(1, 1, Class::far, "placement changed")};
    EXPECT_FALSE(enough_pairs(pairs, 2));
    pairs.push_back(pair_of(1, 1, Class::far));
    EXPECT_TRUE(enough_pairs(pairs, 2));
    EXPECT_FALSE(enough_pairs({}, 1));
}

TEST(Figures, DisturbedPairsDoNotCountBesideGoodOnes)
{
    Findings findings;
    findings.pairs[measure("rtt.8")] = {pair_of(900, 100, Class::ccx, "placement changed"),
                                        pair_of(150, 100)};
    EXPECT_DOUBLE_EQ(*row_of(figure("qp.rtt.8"), findings).value, 150);
}

TEST(Figures, OnlyDisturbedPairsAreShownAsSuch)
{
    Findings findings;
    findings.pairs[measure("rtt.8")] = {pair_of(150, 100, Class::ccx, "placement changed")};
    const Row row = row_of(figure("qp.rtt.8"), findings);
    EXPECT_EQ(row.verdict, "disturbed");
    EXPECT_NE(row.note.find("placement changed"), std::string::npos);
}

TEST(Figures, AClassThatDidNotOccurIsMissing)
{
    const Findings findings;
    const Row row = row_of(figure("qp.rtt.8"), findings);
    EXPECT_EQ(row.verdict, "missing");
    EXPECT_FALSE(row.value);
}

TEST(Figures, AFigureThatFailedDoesNotStand)
{
    Findings findings;
    findings.pairs[measure("rate.32")] = {pair_of(120e6, 360e6)};
    findings.failures[measure("rate.32")] = "messages are missing";
    EXPECT_EQ(row_of(figure("qp.rate.32"), findings).verdict, "failed");
}

TEST(Figures, MemoryIsJudgedByItself)
{
    Findings findings;
    findings.memory_bytes.value = 64.0 * 1024 * 1024;
    const Row row = row_of(figure("mem.host"), findings);
    EXPECT_DOUBLE_EQ(*row.value, 64);
    EXPECT_EQ(row.verdict, "reached");
    EXPECT_FALSE(row.placement);
}

TEST(Figures, NeverIsAnAnswer)
{
    Findings findings;
    EXPECT_EQ(row_of(figure("copy.crossover"), findings).verdict, "missing");
    findings.crossover_bytes = {.value = 0, .failure = "", .note = "the curve"};
    const Row never = row_of(figure("copy.crossover"), findings);
    EXPECT_EQ(never.verdict, "never");
    EXPECT_FALSE(never.value);
    EXPECT_EQ(never.note, "the curve");
    findings.crossover_bytes.value = 4096;
    const Row row = row_of(figure("copy.crossover"), findings);
    EXPECT_EQ(row.verdict, "shown");
    EXPECT_DOUBLE_EQ(*row.value, 4096);
    findings.crossover_bytes = {.value = {}, .failure = "no such device"};
    EXPECT_EQ(row_of(figure("copy.crossover"), findings).verdict, "failed");
}

TEST(Figures, NamesSelectOneOrAllBelowADot)
{
    Selection one{};
    EXPECT_TRUE(select("mem.host", one));
    EXPECT_EQ(std::count(one.begin(), one.end(), true), 1);
    Selection rates{};
    EXPECT_TRUE(select("qp.rate", rates));
    EXPECT_EQ(std::count(rates.begin(), rates.end(), true), 3);
    Selection none{};
    EXPECT_FALSE(select("qp.rat", none));
    EXPECT_EQ(none, Selection{});
}

TEST(Figures, ThePlanHoldsWhatIsNeededAndNoMore)
{
    Selection selection{};
    select("qp.ovh.64", selection);
    select("idle.cpu", selection);
    Plan plan{};
    plan_for(selection, plan);
    EXPECT_TRUE(plan.wanted[measure("rtt.64")]);
    EXPECT_EQ(std::count(plan.wanted.begin(), plan.wanted.end(), true), 1);
    EXPECT_TRUE(plan.idle);
    EXPECT_FALSE(plan.memory);
    EXPECT_FALSE(plan.kill);
}
