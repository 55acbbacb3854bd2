// SPDX-License-Identifier: BSD-3-Clause
// How long the messages of a run are: a table that is gone through again and again.
#ifndef PKTGEN_POINT_SIZES_HPP
#define PKTGEN_POINT_SIZES_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "point/point.hpp"

namespace pktgen
{

/// What --mix says.
struct Mix {
    MixKind kind = MixKind::fixed;
    uint32_t from = 0, to = 0; ///< of uniform, bytes
    std::string file;          ///< of pcap
};

/// "fixed", "imix", "uniform:A-B" or "pcap:FILE". @return empty, or what is wrong
std::string parse_mix(const std::string &text, Mix &mix);

class Sizes
{
public:
    /// Fixed, imix or uniform as @p point says; the same table at both ends and in every run.
    explicit Sizes(const Point &point);
    /// As in a file, in its order. @param sizes  not empty, each 1 to largest_size
    explicit Sizes(std::vector<uint32_t> sizes);

    /// Where in the table the next message is, and how long it will be.
    size_t index() const { return at_; }
    uint32_t size() const { return table_[at_]; }
    void advance() { at_ = at_ + 1 == table_.size() ? 0 : at_ + 1; }
    bool fixed() const { return table_.size() == 1; }
    uint32_t mean() const;
    uint32_t largest() const;

private:
    std::vector<uint32_t> table_;
    size_t at_ = 0;
};

} // namespace pktgen

#endif
