// SPDX-License-Identifier: BSD-3-Clause
// The choice between DMA and the CPU's stores, by curves that are given.
#include "dma/copy_choice.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <unistd.h>
#include <vector>

using namespace plx;
using namespace plx::pmd;

namespace
{

/// Costs at 512, 1024, 2048, ... bytes.
CopyCurve curve_of(const std::vector<std::pair<uint32_t, uint32_t>> &costs)
{
    CopyCurve curve;
    for (const auto &[cpu, dma] : costs) {
        curve.points[curve.count] = {512u << curve.count, cpu, dma};
        curve.count++;
    }
    return curve;
}

TEST(Crossover, WhereTheCurvesCross)
{
    EXPECT_EQ(crossover(curve_of({{100, 900}, {200, 950}, {400, 1000}, {800, 700}, {1600, 800}})),
              4096u);
}

TEST(Crossover, Never)
{
    EXPECT_EQ(crossover(curve_of({{100, 900}, {200, 1000}, {400, 1200}, {800, 1600}})), 0u);
    EXPECT_EQ(crossover(CopyCurve{}), 0u);
}

TEST(Crossover, Always)
{
    EXPECT_EQ(crossover(curve_of({{1000, 300}, {2000, 400}, {4000, 500}})), 512u);
    EXPECT_EQ(crossover(curve_of({{1000, 300}})), 512u);
}

TEST(Crossover, TheSameCostIsNotWorthIt)
{
    EXPECT_EQ(crossover(curve_of({{100, 100}, {200, 200}, {400, 400}})), 0u);
    EXPECT_EQ(crossover(curve_of({{100, 95}, {200, 190}, {400, 370}})), 0u);
    EXPECT_EQ(crossover(curve_of({{100, 88}, {200, 176}, {400, 352}})), 512u);
}

TEST(Crossover, OnePointMeasuredInABadMomentDecidesNothing)
{
    // DMA stumbles once above the crossing, and shines once below it.
    EXPECT_EQ(crossover(curve_of({{100, 900},
                                  {200, 950},
                                  {400, 200},
                                  {800, 1900},
                                  {1600, 2000},
                                  {3200, 1000},
                                  {6400, 8000},
                                  {12800, 2400},
                                  {25600, 4800}})),
              16384u);
    // The CPU was interrupted once.
    EXPECT_EQ(crossover(curve_of({{100, 300}, {900, 600}, {400, 1200}, {800, 2400}})), 0u);
}

TEST(Crossover, ExtremesStayInBounds)
{
    EXPECT_EQ(crossover(curve_of({{1, UINT32_MAX}, {UINT32_MAX, 1}})), 1024u);
    EXPECT_EQ(crossover(curve_of({{UINT32_MAX, 1}, {1, UINT32_MAX}})), 0u);
}

const CopyCurve crossing = curve_of({{100, 900}, {200, 100}});

TEST(Choice, WhatAUserAsksForGoesFirst)
{
    EXPECT_EQ(choose_copy({.mode = CopyMode::cpu}, crossing, 256, 1).dma_min, 0u);
    EXPECT_EQ(choose_copy({.mode = CopyMode::dma}, crossing, 256, 1).dma_min, 257u);
    EXPECT_EQ(choose_copy({.mode = CopyMode::dma, .dma_min = 9000}, {}, 256, 1).dma_min, 9000u);
    EXPECT_EQ(choose_copy({.dma_min = 700}, crossing, 256, 1).dma_min, 700u);
    EXPECT_EQ(choose_copy({.dma_min = 7}, crossing, 256, 1).dma_min, 257u);
}

TEST(Choice, ByACurve)
{
    const CopyChoice measured = choose_copy({}, crossing, 256, 2);
    EXPECT_EQ(measured.dma_min, 1024u);
    EXPECT_TRUE(measured.measured);
    EXPECT_EQ(measured.dma_queues, 2u);
    EXPECT_EQ(choose_copy({}, crossing, 1024, 2).dma_min, 1025u);

    const CopyChoice given =
        choose_copy({.curve = curve_of({{100, 900}, {200, 900}})}, crossing, 256, 1);
    EXPECT_EQ(given.dma_min, 0u);
    EXPECT_FALSE(given.measured);
    EXPECT_EQ(given.curve.count, 2u);
}

TEST(Choice, WithoutAnEngineOrACurveTheCpuCopies)
{
    EXPECT_EQ(choose_copy({}, crossing, 256, 0).dma_min, 0u);
    EXPECT_EQ(choose_copy({.dma_min = 700}, crossing, 256, 0).dma_min, 0u);
    EXPECT_EQ(choose_copy({}, {}, 256, 1).dma_min, 0u);
}

TEST(Choice, MeasuresOnlyWhereNothingElseDecides)
{
    EXPECT_TRUE(wants_measuring({}));
    EXPECT_FALSE(wants_measuring({.mode = CopyMode::cpu}));
    EXPECT_FALSE(wants_measuring({.mode = CopyMode::dma}));
    EXPECT_FALSE(wants_measuring({.dma_min = 1}));
    EXPECT_FALSE(wants_measuring({.curve = crossing}));
}

std::string line_of(const CopyChoice &choice)
{
    char text[copy_text_bytes];
    describe(choice, text, sizeof(text));
    EXPECT_LT(std::string(text).size() + 1, sizeof(text));
    return text;
}

TEST(Choice, SaysWhatAndWhy)
{
    EXPECT_EQ(line_of(choose_copy({}, crossing, 256, 2)),
              "messages inline up to 256 bytes, longer ones by CPU stores, from 1024 bytes on by "
              "DMA (on 2 queue pairs): as measured");
    EXPECT_EQ(line_of(choose_copy({}, {}, 256, 0)),
              "messages inline up to 256 bytes, longer ones by CPU stores, none by DMA: there is "
              "no DMA channel");
    EXPECT_EQ(line_of({}), "how messages are copied is chosen when a peer connects");
    line_of({.dma_min = 16777215,
             .why = "by the curve that was given",
             .dma_queues = 4,
             .inline_max = 1024});
}

TEST(Curve, IsReadFromDevargs)
{
    CopyCurve curve;
    ASSERT_EQ(read_curve("512:90:800/4096:400:900", &curve), nullptr);
    ASSERT_EQ(curve.count, 2u);
    EXPECT_EQ(curve.points[0].bytes, 512u);
    EXPECT_EQ(curve.points[0].cpu_ns, 90u);
    EXPECT_EQ(curve.points[0].dma_ns, 800u);
    EXPECT_EQ(curve.points[1].bytes, 4096u);
    EXPECT_EQ(curve.points[1].dma_ns, 900u);
}

/// A file of the test's own, removed at its end.
class CurveFile
{
    std::string path_;

public:
    explicit CurveFile(const std::string &text)
    {
        char name[] = "/tmp/plx_curve_XXXXXX";
        const int fd = mkstemp(name);
        EXPECT_GE(fd, 0);
        EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        close(fd);
        path_ = name;
    }
    ~CurveFile() { unlink(path_.c_str()); }
    CurveFile(const CurveFile &) = delete;
    CurveFile &operator=(const CurveFile &) = delete;
    const char *path() const { return path_.c_str(); }
};

TEST(Curve, IsReadFromAFile)
{
    const CurveFile file("# bytes cpu dma\n\n512 90\t800\r\n  1024 180 810 # noisy\n4096:400:900");
    CopyCurve curve;
    ASSERT_EQ(read_curve(file.path(), &curve), nullptr);
    ASSERT_EQ(curve.count, 3u);
    EXPECT_EQ(curve.points[1].cpu_ns, 180u);
    EXPECT_EQ(curve.points[2].dma_ns, 900u);
}

TEST(Curve, PrintedOneIsReadAgain)
{
    const CopyCurve before = curve_of({{1, 2}, {3, UINT32_MAX}, {5, 6}});
    char text[256] = "";
    std::FILE *file = fmemopen(text, sizeof(text), "w");
    ASSERT_NE(file, nullptr);
    print_curve(before, file);
    std::fclose(file);
    CopyCurve after;
    ASSERT_EQ(read_curve(text, &after), nullptr) << text;
    ASSERT_EQ(after.count, before.count);
    for (unsigned i = 0; i < after.count; i++) {
        EXPECT_EQ(after.points[i].bytes, before.points[i].bytes);
        EXPECT_EQ(after.points[i].cpu_ns, before.points[i].cpu_ns);
        EXPECT_EQ(after.points[i].dma_ns, before.points[i].dma_ns);
    }
}

TEST(Curve, BadOnesAreRefusedAndChangeNothing)
{
    std::string many, most;
    for (unsigned i = 1; i <= CopyCurve::points_max + 1; i++) {
        many += std::to_string(i) + ":1:1/";
        if (i == CopyCurve::points_max)
            most = many;
    }
    CopyCurve curve = crossing;
    for (const std::string &bad :
         {std::string(), std::string("512"), std::string("512:90"), std::string("512:90:"),
          std::string("0:90:800"), std::string("512:0:800"), std::string("512:90:0"),
          std::string("512:-1:800"), std::string("x"), std::string("512:90:800:1"),
          std::string("512:90:800x"), std::string("512:90:800/512:1:1"),
          std::string("512:9:8/256:9:8"), std::string("512:90:4294967296"),
          std::string("/nobody/there"), std::string("/"), std::string("#"), many}) {
        EXPECT_NE(read_curve(bad.c_str(), &curve), nullptr) << bad;
        EXPECT_EQ(curve.count, crossing.count) << bad;
    }
    EXPECT_NE(read_curve(nullptr, &curve), nullptr);
    EXPECT_NE(read_curve(CurveFile("").path(), &curve), nullptr);
    const CurveFile huge(std::string(4097, '\n'));
    EXPECT_STREQ(read_curve(huge.path(), &curve), "a file of at most 4096 bytes");
    EXPECT_EQ(read_curve(most.c_str(), &curve), nullptr);
}

} // namespace
