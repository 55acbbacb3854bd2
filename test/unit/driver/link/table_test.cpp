// SPDX-License-Identifier: BSD-3-Clause
// The table of link life: the one in the code is the one in doc/link-life.md, and it leads
// everywhere and back.
#include "link/table.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace plx::pmd;

namespace
{

using Row = std::vector<std::string>;

std::string state_name(LinkState state)
{
    return link_state_names[static_cast<size_t>(state)];
}

Row row_of(const LinkStep &step)
{
    return {state_name(step.state),
            link_input_names[static_cast<size_t>(step.input)],
            link_action_names[static_cast<size_t>(step.action)],
            state_name(step.next),
            step.report ? link_event_names[static_cast<size_t>(*step.report)] : "",
            step.otherwise ? state_name(*step.otherwise) : ""};
}

/// What stands between bars, without spaces and back-quotes. Empty: no row of a table.
Row cells(const std::string &line)
{
    Row row;
    if (line.empty() || line[0] != '|')
        return row;
    std::stringstream rest(line.substr(1));
    for (std::string cell; std::getline(rest, cell, '|');) {
        std::erase(cell, '`');
        const size_t first = cell.find_first_not_of(' ');
        const size_t last = cell.find_last_not_of(' ');
        row.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
    }
    return row;
}

/// The rows of the tables under heading @p heading, without their own headings.
std::vector<Row> rows_under(const std::string &heading)
{
    std::ifstream file(LINK_LIFE_DOC);
    EXPECT_TRUE(file.is_open()) << LINK_LIFE_DOC;
    std::vector<Row> rows;
    bool here = false;
    bool body = false;
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("## ", 0) == 0)
            here = line == "## " + heading;
        const Row row = here ? cells(line) : Row{};
        if (row.empty())
            body = false;
        else if (row[0].rfind("---", 0) == 0)
            body = true;
        else if (body)
            rows.push_back(row);
    }
    return rows;
}

std::set<std::string> names_under(const std::string &heading)
{
    std::set<std::string> names;
    for (const Row &row : rows_under(heading)) {
        EXPECT_EQ(row.size(), 2u) << row[0];
        EXPECT_GE(row.back().size(), 10u) << row[0] << " is not explained";
        EXPECT_TRUE(names.insert(row[0]).second) << row[0] << " stands there twice";
    }
    return names;
}

template <size_t N>
std::set<std::string> all(const char *const (&names)[N])
{
    return {std::begin(names), std::end(names)};
}

TEST(LinkTable, IsTheOneInTheDocument)
{
    const std::vector<Row> documented = rows_under("The table");
    std::vector<Row> coded;
    for (const LinkStep &step : link_table::steps)
        coded.push_back(row_of(step));
    ASSERT_EQ(documented.size(), coded.size());
    for (size_t i = 0; i < coded.size(); ++i)
        EXPECT_EQ(documented[i], coded[i]) << "row " << i + 1;
}

TEST(LinkTable, EveryNameIsExplained)
{
    EXPECT_EQ(names_under("States"), all(link_state_names));
    EXPECT_EQ(names_under("Events"), all(link_input_names));
    EXPECT_EQ(names_under("Actions"), all(link_action_names));
    EXPECT_EQ(names_under("Reports"), all(link_event_names));
}

TEST(LinkTable, NoRowContradictsAnother)
{
    std::set<std::pair<LinkState, LinkInput>> seen;
    for (const LinkStep &step : link_table::steps)
        EXPECT_TRUE(seen.insert({step.state, step.input}).second)
            << row_of(step)[0] << " " << row_of(step)[1];
}

std::set<LinkState> reachable(LinkState from)
{
    std::set<LinkState> found{from};
    for (size_t before = 0; before != found.size();) {
        before = found.size();
        for (const LinkStep &step : link_table::steps) {
            if (found.count(step.state) == 0)
                continue;
            found.insert(step.next);
            if (step.otherwise)
                found.insert(*step.otherwise);
        }
    }
    return found;
}

TEST(LinkTable, LeadsFromEveryStateToEveryOther)
{
    for (size_t i = 0; i < std::size(link_state_names); ++i)
        EXPECT_EQ(reachable(static_cast<LinkState>(i)).size(), std::size(link_state_names))
            << "from " << link_state_names[i];
}

/// The law of the fence: queues that were open are never open again before the peer's access is
/// known to be gone.
TEST(LinkTable, NoWayFromAConnectionBackAroundTheFence)
{
    for (const LinkStep &step : link_table::steps) {
        if (is_connected(step.state) || is_closing(step.state)) {
            EXPECT_TRUE(is_connected(step.next) || is_closing(step.next) || is_fencing(step.next))
                << row_of(step)[1];
        }
        if (is_closing(step.state)) {
            EXPECT_EQ(step.next, LinkState::losing) << row_of(step)[1];
        }
        if (is_fencing(step.state) && !is_fencing(step.next)) {
            EXPECT_EQ(step.input, LinkInput::fenced);
        }
    }
}

TEST(LinkTable, AConnectedPeerIsReportedLost)
{
    for (const LinkStep &step : link_table::steps) {
        if ((is_connected(step.state) || is_closing(step.state)) && is_fencing(step.next)) {
            EXPECT_EQ(step.next, LinkState::losing) << row_of(step)[1];
        }
        if (step.state == LinkState::losing) {
            EXPECT_EQ(step.report, LinkEvent::lost);
        }
    }
}

} // namespace
