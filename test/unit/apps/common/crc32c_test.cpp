// SPDX-License-Identifier: BSD-3-Clause
#include "crc32c.hpp"

#include <string>

#include <gtest/gtest.h>

namespace
{

TEST(Crc32c, IsTheOneOfTheStandards)
{
    EXPECT_EQ(app::crc32c("", 0), 0U);
    EXPECT_EQ(app::crc32c("123456789", 9), 0xe3069283U);
    const std::string zeros(32, '\0'), ones(32, '\xff'); // RFC 3720, B.4
    EXPECT_EQ(app::crc32c(zeros.data(), zeros.size()), 0x8a9136aaU);
    EXPECT_EQ(app::crc32c(ones.data(), ones.size()), 0x62a8ab43U);
}

TEST(Crc32c, OfPiecesIsThatOfTheWhole)
{
    std::string text;
    for (int i = 0; i < 100; ++i)
        text += static_cast<char>(i * 7);
    const uint32_t whole = app::crc32c(text.data(), text.size());
    for (size_t cut = 0; cut <= text.size(); ++cut) {
        const uint32_t first = app::crc32c(text.data(), cut);
        EXPECT_EQ(app::crc32c(text.data() + cut, text.size() - cut, first), whole) << cut;
    }
}

} // namespace
