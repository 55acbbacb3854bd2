// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/links.hpp"

#include <cstdint>
#include <memory>
#include <set>

#include <gtest/gtest.h>

using namespace ntb::socket;

namespace
{

TEST(Links, AreFoundByTheirNumber)
{
    const auto links = std::make_unique<Links>();
    EXPECT_EQ(links->find(7), nullptr);
    Link *link = links->make(7);
    ASSERT_NE(link, nullptr);
    EXPECT_EQ(link->fd, 7);
    EXPECT_EQ(links->find(7), link);
    EXPECT_EQ(links->find(8), nullptr);
    EXPECT_EQ(links->at(link->index), link);
    links->forget(7);
    EXPECT_EQ(links->find(7), nullptr);
    EXPECT_EQ(links->at(link->index), link) << "it stays";
}

TEST(Links, NumbersThatNoDescriptorHasAreRefused)
{
    const auto links = std::make_unique<Links>();
    for (const int number : {-1, INT32_MIN, INT32_MAX, 4096 * 1024}) {
        EXPECT_EQ(links->make(number), nullptr) << number;
        EXPECT_EQ(links->find(number), nullptr) << number;
    }
    EXPECT_NE(links->make(4096 * 1024 - 1), nullptr);
}

TEST(Links, OneThatIsUsedAgainIsOfAnotherGeneration)
{
    const auto links = std::make_unique<Links>();
    Link *link = links->make(3);
    const std::uint16_t before = link->generation;
    links->forget(3);
    links->release(*link);
    EXPECT_FALSE(link->used);
    EXPECT_EQ(links->make(4), link);
    EXPECT_NE(link->generation, before);
    EXPECT_EQ(links->made(), 1u);
}

TEST(Links, ThoseToLookAtAreKeptWhileTheirNumberGrows)
{
    constexpr int many = 1000; // some chunks, and the list grown twice
    const auto links = std::make_unique<Links>();
    std::set<Link *> hot;
    for (int i = 0; i < many; i++) {
        Link *link = links->make(i);
        ASSERT_NE(link, nullptr);
        links->heat(*link);
        links->heat(*link); // once
        hot.insert(link);
    }
    // From the front, the middle and the back.
    for (const int i : {0, many / 2, many - 1, 1, 255, 256}) {
        links->cool(*links->find(i));
        links->cool(*links->find(i));
        hot.erase(links->find(i));
    }
    std::set<Link *> listed;
    for (std::uint32_t i = 0; i < links->hot_count(); i++) {
        EXPECT_EQ(links->hot(i)->hot, i);
        listed.insert(links->hot(i));
    }
    EXPECT_EQ(listed, hot);
}

TEST(Links, ThatAreOffOrRemovedAreNotLookedAt)
{
    const auto links = std::make_unique<Links>();
    Link *off = links->make(1), *removed = links->make(2);
    off->off = true;
    removed->removed = true;
    links->heat(*off);
    links->heat(*removed);
    EXPECT_EQ(links->hot_count(), 0u);
}

} // namespace
