// SPDX-License-Identifier: BSD-3-Clause
#include "traffic/content.hpp"

#include <gtest/gtest.h>

#include "measure/poster.hpp"

namespace
{

using pktgen::Pattern;
using pktgen::Seal;

TEST(Content, IsTheSameWholeAndInPieces)
{
    constexpr size_t bytes = 200000, cut = 64 * 1000;
    for (const Pattern pattern :
         {Pattern::counter, Pattern::zeros, Pattern::ones, Pattern::random}) {
        const pktgen::Content content(pattern);
        std::vector<std::byte> whole(bytes), pieces(bytes);
        content.fill(whole.data(), bytes, 0, 7);
        content.fill(pieces.data(), cut, 0, 7);
        content.fill(&pieces[cut], bytes - cut, cut, 7);
        EXPECT_EQ(whole, pieces) << pktgen::name_of(pattern);
    }
}

TEST(Content, SealTellsNumberAndEveryByte)
{
    for (const size_t bytes : {size_t{8}, size_t{9}, size_t{300}}) {
        std::vector<std::byte> data(bytes);
        pktgen::Content(Pattern::random).fill(data.data(), bytes, 0, 5);
        pktgen::put_seal(data.data(), bytes, 5);
        EXPECT_EQ(pktgen::check_seal(data.data(), bytes, 5), Seal::good);
        EXPECT_EQ(pktgen::check_seal(data.data(), bytes, 6), Seal::other_number);
        for (size_t i = 0; i < bytes; ++i) {
            data[i] ^= std::byte{4};
            EXPECT_NE(pktgen::check_seal(data.data(), bytes, 5), Seal::good) << i;
            data[i] ^= std::byte{4};
        }
    }
}

TEST(Uniques, TakeAValueOnce)
{
    pktgen::Uniques uniques;
    EXPECT_TRUE(uniques.take(0));
    EXPECT_TRUE(uniques.take(63));
    EXPECT_TRUE(uniques.take(64));
    EXPECT_FALSE(uniques.take(63));
    EXPECT_TRUE(uniques.take(pktgen::Uniques::most - 1));
    EXPECT_FALSE(uniques.take(pktgen::Uniques::most));
}

} // namespace
