// SPDX-License-Identifier: BSD-3-Clause
#include "point/sizes.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "point/lists.hpp"

namespace pktgen
{

namespace
{

constexpr size_t table_entries = 4096;
constexpr uint32_t table_seed = 20;

// The "simple IMIX" of router tests: frames of 64, 594 and 1518 bytes, 7 : 4 : 1.
constexpr uint32_t imix_small = 64, imix_middle = 594, imix_large = 1518;
constexpr uint32_t imix_parts = 12;

uint32_t imix(uint32_t part)
{
    if (part < 7)
        return imix_small;
    return part < 11 ? imix_middle : imix_large;
}

std::vector<uint32_t> table_of(const Point &point)
{
    if (point.mix != MixKind::imix && point.mix != MixKind::uniform)
        return {point.size};
    std::mt19937 random(table_seed);
    std::vector<uint32_t> table(table_entries);
    const uint64_t span = uint64_t{point.size_to} - point.size + 1;
    for (size_t i = 0; i < table.size(); ++i)
        table[i] = point.mix == MixKind::imix ? imix(static_cast<uint32_t>(i % imix_parts))
                                              : point.size + static_cast<uint32_t>(random() % span);
    if (point.mix == MixKind::imix)
        std::shuffle(table.begin(), table.end(), random);
    return table;
}

} // namespace

std::string parse_mix(const std::string &text, Mix &mix)
{
    if (text == "fixed")
        return {};
    if (text == "imix") {
        mix = {MixKind::imix, imix_small, imix_large, ""};
        return {};
    }
    const size_t colon = text.find(':');
    const std::string kind = text.substr(0, colon);
    const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
    if (kind == "pcap" && !rest.empty()) {
        mix = {MixKind::pcap, 0, 0, rest};
        return {};
    }
    uint64_t from = 0, to = 0;
    if (kind == "uniform" && parse_span(rest, from, to) && from >= 1 && from <= to &&
        to <= largest_size) {
        mix = {MixKind::uniform, static_cast<uint32_t>(from), static_cast<uint32_t>(to), ""};
        return {};
    }
    return "--mix " + text + ": must be fixed, imix, uniform:A-B (bytes) or pcap:FILE";
}

Sizes::Sizes(const Point &point) : table_(table_of(point)) {}

Sizes::Sizes(std::vector<uint32_t> sizes) : table_(std::move(sizes)) {}

uint32_t Sizes::mean() const
{
    const uint64_t sum = std::accumulate(table_.begin(), table_.end(), uint64_t{0});
    return static_cast<uint32_t>((sum + table_.size() / 2) / table_.size());
}

uint32_t Sizes::largest() const
{
    return *std::max_element(table_.begin(), table_.end());
}

} // namespace pktgen
