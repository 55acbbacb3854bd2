// SPDX-License-Identifier: BSD-3-Clause
#include "json.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace
{

TEST(Json, FitsOnOneLine)
{
    app::JsonText json(app::JsonText::Layout::one_line);
    json.begin_object();
    json.member("a", 1U);
    json.key("b");
    json.begin_array();
    json.row({1.5, 2});
    json.value("x");
    json.end_array();
    json.end_object();
    EXPECT_EQ(json.text(), "{\"a\": 1,\"b\": [[1.5, 2],\"x\"]}\n");
}

TEST(Json, NestsAndSeparates)
{
    app::JsonText json;
    json.begin_object();
    json.member("a", 1U);
    json.key("b");
    json.begin_array();
    json.row({1.5, 2});
    json.value("x");
    json.end_array();
    json.key("c");
    json.begin_array();
    json.end_array();
    json.member("d", true);
    json.end_object();
    EXPECT_EQ(json.text(),
              "{\n  \"a\": 1,\n  \"b\": [\n    [1.5, 2],\n    \"x\"\n  ],\n  \"c\": [],\n"
              "  \"d\": true\n}\n");
}

TEST(Json, WhatIsNoNumberIsNull)
{
    app::JsonText json;
    json.begin_array();
    json.value(std::nan(""));
    json.value(HUGE_VAL);
    json.value(0.25);
    json.end_array();
    EXPECT_EQ(json.text(), "[\n  null,\n  null,\n  0.25\n]\n");
}

TEST(Json, TextIsEscaped)
{
    EXPECT_EQ(app::json_quoted("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\u000a\\u0001\"");
    EXPECT_EQ(app::json_quoted("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\"");
}

/// Names of files may be any bytes; a JSON text may not.
TEST(Json, WhatIsNoUtf8IsReplaced)
{
    EXPECT_EQ(app::json_quoted("\xff"), "\"\\ufffd\"");
    EXPECT_EQ(app::json_quoted("\xc3"), "\"\\ufffd\"");
    EXPECT_EQ(app::json_quoted("\xc0\xaf"), "\"\\ufffd\\ufffd\"");            // longer than needed
    EXPECT_EQ(app::json_quoted("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\""); // half of a pair
    EXPECT_EQ(app::json_quoted("\xf0\x9f\x98\x80"), "\"\xf0\x9f\x98\x80\"");
}

} // namespace
