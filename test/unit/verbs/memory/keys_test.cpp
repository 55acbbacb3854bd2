// SPDX-License-Identifier: BSD-3-Clause
#include "memory/keys.hpp"

#include <array>
#include <cerrno>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace
{

using ntb::verbs::Asker;
using ntb::verbs::Keys;
using ntb::verbs::Window;

class KeysTest : public testing::Test
{
protected:
    void SetUp() override { ASSERT_TRUE(keys_.create()); }
    Keys keys_;
    std::array<std::byte, 64> memory_{};
};

TEST_F(KeysTest, LeadsToWhatIsInRangeAndNoFurther)
{
    const std::uint32_t key = keys_.add(1, memory_.data(), 64, 0x1000, 3);
    ASSERT_NE(key, 0u);
    EXPECT_EQ(keys_.find(key, 1, 0x1000, 64, 1), memory_.data());
    EXPECT_EQ(keys_.find(key, 1, 0x103f, 1, 3), memory_.data() + 63);
    EXPECT_EQ(keys_.find(key, 1, 0x1040, 0, 3), memory_.data() + 64);
    EXPECT_EQ(keys_.find(key, 1, 0x103f, 2, 1), nullptr);
    EXPECT_EQ(keys_.find(key, 1, 0xfff, 1, 1), nullptr);
    EXPECT_EQ(keys_.find(key, 1, 0x1001, ~std::uint64_t{0}, 1), nullptr);
    EXPECT_EQ(keys_.find(key, 1, ~std::uint64_t{0}, 0x1100, 1), nullptr);
}

TEST_F(KeysTest, AsksForDomainAndEveryRight)
{
    const std::uint32_t key = keys_.add(1, memory_.data(), 64, 0, 3);
    EXPECT_EQ(keys_.find(key, 2, 0, 1, 1), nullptr);
    EXPECT_EQ(keys_.find(key, 1, 0, 1, 4), nullptr);
    EXPECT_EQ(keys_.find(key, 1, 0, 1, 5), nullptr);
    EXPECT_EQ(keys_.find(key ^ 1, 1, 0, 1, 1), nullptr);
    EXPECT_EQ(keys_.find(0, 1, 0, 0, 0), nullptr);
    EXPECT_EQ(keys_.remove(2, key), -EINVAL);
    EXPECT_EQ(keys_.remove(1, key ^ 1), -EINVAL);
    EXPECT_EQ(keys_.remove(1, 0), -EINVAL);
}

TEST_F(KeysTest, ARemovedKeyIsNoKeyAndDoesNotComeBackAtOnce)
{
    Keys few;
    ASSERT_TRUE(few.create(2)); // one slot
    std::uint32_t last = 0;
    for (int i = 0; i < 1000; ++i) {
        const std::uint32_t key = few.add(1, memory_.data(), 64, 0, 1);
        ASSERT_NE(key, 0u);
        ASSERT_NE(key, last);
        ASSERT_EQ(few.find(last, 1, 0, 1, 1), nullptr);
        ASSERT_EQ(few.add(1, memory_.data(), 64, 0, 1), 0u) << "no slot is free";
        ASSERT_EQ(few.remove(1, key), 0);
        ASSERT_EQ(few.remove(1, key), -EINVAL);
        ASSERT_EQ(few.find(key, 1, 0, 1, 1), nullptr);
        last = key;
    }
}

TEST_F(KeysTest, ARegionMayChangeUnderItsKey)
{
    const std::uint32_t key = keys_.add(1, memory_.data(), 64, 1000, 1);
    ASSERT_NE(key, 0u);
    EXPECT_EQ(keys_.change(2, key, 2, memory_.data(), 64, 1000, 1), -EINVAL) << "of another domain";
    EXPECT_EQ(keys_.change(1, key ^ 1, 1, memory_.data(), 64, 1000, 1), -EINVAL);
    EXPECT_EQ(keys_.change(1, 0, 1, memory_.data(), 64, 1000, 1), -EINVAL);
    EXPECT_NE(keys_.find(key, 1, 1000, 64, 1), nullptr);
    ASSERT_EQ(keys_.change(1, key, 2, memory_.data() + 8, 16, 2000, 3), 0);
    EXPECT_EQ(keys_.find(key, 1, 2000, 1, 1), nullptr);
    EXPECT_EQ(keys_.find(key, 2, 1000, 1, 1), nullptr);
    EXPECT_EQ(keys_.find(key, 2, 2000, 17, 1), nullptr);
    EXPECT_EQ(keys_.find(key, 2, 2001, 15, 3), memory_.data() + 9);
    EXPECT_EQ(keys_.remove(1, key), -EINVAL);
    EXPECT_EQ(keys_.remove(2, key), 0);
}

TEST_F(KeysTest, AWindowIsForPeersAndForItsOwner)
{
    const std::uint32_t region =
        keys_.add(1, memory_.data(), 64, 1000, NTBV_LOCAL_WRITE | NTBV_MW_BIND);
    const Asker owner = {1, 7}, other = {1, 8};
    Window window;
    const std::uint32_t key = keys_.add_window(1, NTBV_MW_2, window);
    ASSERT_NE(key, 0u);
    EXPECT_TRUE(keys_.may_have(window, key ^ 0xff));
    EXPECT_FALSE(keys_.may_have(window, key ^ 0x100));
    EXPECT_FALSE(keys_.may_have(window, key ^ 0x10000));
    EXPECT_EQ(keys_.find_for_peer(key, owner, 1000, 0, 0), nullptr) << "is not bound";
    ASSERT_TRUE(keys_.bind({window, key, region, 1008, 16, NTBV_REMOTE_WRITE}, owner));
    EXPECT_EQ(keys_.find_for_peer(key, owner, 1008, 16, NTBV_REMOTE_WRITE), memory_.data() + 8);
    EXPECT_EQ(keys_.find_for_peer(key, owner, 1008, 17, NTBV_REMOTE_WRITE), nullptr);
    EXPECT_EQ(keys_.find_for_peer(key, owner, 1008, 16, NTBV_REMOTE_READ), nullptr);
    EXPECT_EQ(keys_.find_for_peer(key, other, 1008, 16, NTBV_REMOTE_WRITE), nullptr);
    EXPECT_EQ(keys_.find(key, 1, 1008, 16, 0), nullptr) << "not for local requests";
    EXPECT_EQ(keys_.remove(1, region), -EBUSY);
    EXPECT_FALSE(keys_.invalidate(key, other));
    EXPECT_TRUE(keys_.invalidate(key, owner));
    EXPECT_FALSE(keys_.invalidate(key, owner));
    EXPECT_EQ(keys_.remove(1, region), 0);
}

TEST_F(KeysTest, WhatAProgramChoosesBringsNoEarlierKeyBack)
{
    Keys few;
    ASSERT_TRUE(few.create(2)); // one slot
    std::uint32_t last = 0;
    for (int i = 0; i < 1000; ++i) {
        Window window;
        const std::uint32_t key = i % 2 != 0 ? few.add(1, memory_.data(), 64, 0, 1)
                                             : few.add_window(1, NTBV_MW_2, window);
        ASSERT_NE(key, 0u);
        ASSERT_NE(key >> 8, last >> 8);
        if (i % 2 != 0)
            ASSERT_EQ(few.remove(1, key), 0);
        else
            few.remove_window(window);
        last = key;
    }
}

TEST_F(KeysTest, ManyAreDifferentAndScattered)
{
    std::set<std::uint32_t> seen;
    std::set<std::uint32_t> high, low;
    for (int i = 0; i < 65535; ++i) {
        const std::uint32_t key = keys_.add(1, memory_.data(), 64, 0, 1);
        ASSERT_NE(key, 0u);
        ASSERT_TRUE(seen.insert(key).second);
        if (i < 64) {
            high.insert(key >> 26);
            low.insert((key & 0xffff) >> 10);
        }
    }
    EXPECT_EQ(keys_.add(1, memory_.data(), 64, 0, 1), 0u);
    // Of 64 draws out of 64, 40 are different on average; fewer than 20 is no chance.
    EXPECT_GT(high.size(), 20u);
    EXPECT_GT(low.size(), 20u);
}

} // namespace
