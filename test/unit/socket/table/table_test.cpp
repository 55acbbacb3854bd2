// SPDX-License-Identifier: BSD-3-Clause
#include "table/table.hpp"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace ntb::socket
{

class TableTest : public testing::Test
{
protected:
    void SetUp() override
    {
        ended_ = 0;
        ASSERT_TRUE(table_.make(1000, 4, [](Object *object) {
            ended_++;
            table_.end(object);
        }));
    }
    void TearDown() override { table_.unmake(); }

    Object *add(int fd)
    {
        Object *object = table_.add(fd, Object::Kind::Connection, 7);
        if (object != nullptr)
            table_.done(object);
        return object;
    }

    static Table table_;
    static std::atomic<int> ended_;
};

Table TableTest::table_;
std::atomic<int> TableTest::ended_;

TEST_F(TableTest, FindsNothingOutsideOfItsNumbers)
{
    EXPECT_EQ(table_.find(-1), nullptr);
    EXPECT_EQ(table_.find(1 << 30), nullptr);
    EXPECT_EQ(table_.use(-1), nullptr);
    EXPECT_EQ(add(1 << 20), nullptr);
    EXPECT_EQ(table_.take(-5).object, nullptr);
    EXPECT_FALSE(table_.hidden(-1));
    const Table empty;
    EXPECT_EQ(empty.find(0), nullptr);
    EXPECT_FALSE(empty.hidden(0));
    EXPECT_EQ(empty.next_hidden(0, ~0u), -1);
}

TEST_F(TableTest, EndsAnObjectWithItsLastDescriptor)
{
    Object *object = add(5);
    table_.copy(5, 6);
    table_.copy(9, 7);
    EXPECT_EQ(table_.find(6), object);
    EXPECT_EQ(table_.find(7), nullptr);
    Table::Taken taken = table_.take(5);
    EXPECT_EQ(taken.object, object);
    EXPECT_FALSE(taken.last);
    EXPECT_EQ(table_.find(5), nullptr);
    taken = table_.take(6);
    EXPECT_TRUE(taken.last);
    EXPECT_TRUE(taken.over);
    EXPECT_EQ(table_.take(6).object, nullptr);
}

TEST_F(TableTest, TakesANumberOnlyFromWhatItStandsFor)
{
    Object *first = add(5), *second = add(6);
    EXPECT_EQ(table_.take(5, second).object, nullptr);
    EXPECT_EQ(table_.take(7, second).object, nullptr);
    EXPECT_EQ(table_.take(-1, second).object, nullptr);
    EXPECT_EQ(table_.find(5), first);
    const Table::Taken taken = table_.take(6, second);
    EXPECT_EQ(taken.object, second);
    EXPECT_TRUE(taken.last);
    EXPECT_TRUE(taken.over);
}

TEST_F(TableTest, LeavesTheEndToItsLastUser)
{
    Object *object = add(5);
    ASSERT_EQ(table_.use(5), object);
    ASSERT_EQ(table_.use(5), object);
    const Table::Taken taken = table_.take(5);
    EXPECT_TRUE(taken.last);
    EXPECT_FALSE(taken.over);
    table_.done(object);
    EXPECT_EQ(ended_, 0);
    table_.done(object);
    EXPECT_EQ(ended_, 1);
}

TEST_F(TableTest, UsesObjectsAgain)
{
    for (int turn = 0; turn < 3; turn++) {
        for (int fd = 0; fd < 4; fd++)
            ASSERT_NE(add(fd), nullptr);
        EXPECT_EQ(add(4), nullptr);
        for (int fd = 0; fd < 4; fd++)
            table_.end(table_.take(fd).object);
    }
}

TEST_F(TableTest, KnowsHiddenOnes)
{
    for (const int fd : {3, 64, 500})
        table_.hide(fd);
    EXPECT_TRUE(table_.hidden(64));
    EXPECT_EQ(table_.next_hidden(0, ~0u), 3);
    EXPECT_EQ(table_.next_hidden(4, ~0u), 64);
    EXPECT_EQ(table_.next_hidden(65, 499), -1);
    EXPECT_EQ(table_.next_hidden(65, 500), 500);
    table_.show(64);
    EXPECT_EQ(table_.next_hidden(4, ~0u), 500);
}

TEST_F(TableTest, ListsWhatStandsForSomething)
{
    add(5);
    add(70);
    EXPECT_EQ(table_.next(0, ~0u), 5);
    EXPECT_EQ(table_.next(6, ~0u), 70);
    EXPECT_EQ(table_.next(6, 69), -1);
}

TEST_F(TableTest, ForgetsTheUsersOfOtherThreadsInAChild)
{
    Object *object = add(5);
    ASSERT_EQ(table_.use(5), object);
    table_.forked();
    const Table::Taken taken = table_.take(5);
    EXPECT_TRUE(taken.last);
    EXPECT_TRUE(taken.over);
}

// Each object ends once, whoever is last.
TEST_F(TableTest, EndsEachObjectOnceAmongThreads)
{
    std::atomic<bool> over = false;
    std::vector<std::thread> users;
    for (int i = 0; i < 2; i++)
        users.emplace_back([&] {
            while (!over)
                if (Object *object = table_.use(5); object != nullptr)
                    table_.done(object);
        });
    int made = 0, taken_here = 0;
    for (int i = 0; i < 20000; i++) {
        Object *object = add(5);
        if (object == nullptr)
            continue;
        made++;
        if (const Table::Taken taken = table_.take(5); taken.over) {
            taken_here++;
            table_.end(taken.object);
        }
    }
    over = true;
    for (std::thread &user : users)
        user.join();
    EXPECT_GT(made, 0);
    EXPECT_EQ(ended_ + taken_here, made);
}

TEST_F(TableTest, WhoSleepsKeepsAnObjectAndNeedNotBeWaitedFor)
{
    Object *object = add(5);
    ASSERT_EQ(table_.use(5), object);
    EXPECT_EQ(Table::awake(*object), 1u);
    Table::sleep(*object);
    EXPECT_TRUE(Table::is_used(*object));
    EXPECT_TRUE(Table::has_sleepers(*object));
    EXPECT_EQ(Table::awake(*object), 0u);
    EXPECT_FALSE(table_.take(5).over);
    EXPECT_EQ(ended_, 0);
    Table::wake(*object);
    EXPECT_FALSE(Table::has_sleepers(*object));
    EXPECT_EQ(Table::awake(*object), 1u);
    table_.done(object);
    EXPECT_EQ(ended_, 1);
}

TEST_F(TableTest, AChildEndsWhatItsParentsThreadsHadKept)
{
    Object *left = add(5), *open = add(6), *own = add(7);
    for (Object *one : {left, open, own}) {
        Table::touch(*one);
        Table::sleep(*one);
    }
    EXPECT_FALSE(table_.take(5).over);
    EXPECT_FALSE(table_.take(7).over);
    table_.forked();
    Table::touch(*own); // of the thread that forks
    EXPECT_FALSE(Table::is_used(*open));
    table_.end_left();
    EXPECT_EQ(ended_, 1);
    EXPECT_EQ(table_.find(6), open);
    table_.end_left();
    EXPECT_EQ(ended_, 1) << "once";
    table_.done(own);
    EXPECT_EQ(ended_, 2);
}

} // namespace ntb::socket
