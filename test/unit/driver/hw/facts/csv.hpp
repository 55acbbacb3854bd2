// SPDX-License-Identifier: BSD-3-Clause
// Reads the comma-separated files in data/: a header line, fields that may be quoted.
#ifndef TEST_UNIT_HW_CSV_HPP
#define TEST_UNIT_HW_CSV_HPP

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace test
{

using CsvRow = std::map<std::string, std::string>;

inline std::vector<std::string> split_csv(const std::string &line)
{
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (const char c : line) {
        if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            cells.emplace_back();
        else if (c != '\r')
            cells.back() += c;
    }
    return cells;
}

/// Every row by column name; none when the file cannot be read.
inline std::vector<CsvRow> read_csv(const std::string &path)
{
    std::vector<CsvRow> rows;
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    const auto header = split_csv(line);
    while (std::getline(in, line)) {
        const auto cells = split_csv(line);
        CsvRow row;
        for (size_t i = 0; i < header.size(); i++)
            row[header[i]] = i < cells.size() ? cells[i] : "";
        rows.push_back(row);
    }
    return rows;
}

inline uint32_t number(const std::string &text)
{
    return static_cast<uint32_t>(std::stoul(text, nullptr, 0));
}

} // namespace test

#endif
