// SPDX-License-Identifier: BSD-3-Clause
// A log-linear histogram: any 64-bit value, a relative error below 1 %, constant time and memory.
#ifndef APP_HISTOGRAM_HPP
#define APP_HISTOGRAM_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace app
{

/// Values below 128 have a bucket each. Above, every power of two is cut into 64 equal buckets,
/// so a bucket is never wider than 1/64 of what it holds; its middle is what is reported.
class Histogram
{
public:
    void record(uint64_t value)
    {
        ++buckets_[index_of(value)];
        ++count_;
        sum_ += static_cast<double>(value);
        min_ = std::min(min_, value);
        max_ = std::max(max_, value);
    }

    /// Takes over all that @p other holds.
    void add(const Histogram &other)
    {
        for (unsigned i = 0; i < bucket_count; ++i)
            buckets_[i] += other.buckets_[i];
        count_ += other.count_;
        sum_ += other.sum_;
        min_ = std::min(min_, other.min_);
        max_ = std::max(max_, other.max_);
    }

    uint64_t count() const { return count_; }
    uint64_t min() const { return count_ != 0 ? min_ : 0; }
    uint64_t max() const { return max_; }
    double mean() const { return count_ != 0 ? sum_ / static_cast<double>(count_) : 0; }

    /// The value that @p part (0 to 1) of all values do not exceed; 0 when there is none.
    uint64_t quantile(double part) const
    {
        if (count_ == 0)
            return 0;
        const double wanted = std::ceil(part * static_cast<double>(count_));
        const auto rank = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, count_);
        if (rank == count_)
            return max_;
        uint64_t seen = 0;
        for (unsigned i = 0; i < bucket_count; ++i) {
            seen += buckets_[i];
            if (seen >= rank)
                return std::clamp(middle_of(i), min_, max_);
        }
        return max_;
    }

    /// Calls @p each (first value, first value beyond, how many) for every bucket that is not
    /// empty, the lowest first. The last bucket ends at the largest value.
    template <typename Each>
    void for_each_bucket(Each each) const
    {
        for (unsigned i = 0; i < bucket_count; ++i) {
            if (buckets_[i] != 0)
                each(low_of(i), i + 1 < bucket_count ? low_of(i + 1) : UINT64_MAX, buckets_[i]);
        }
    }

private:
    static constexpr unsigned sub_bits = 6; // 64 buckets a power of two
    static constexpr unsigned sub_buckets = 1U << sub_bits;
    static constexpr unsigned linear = 2 * sub_buckets;
    static constexpr unsigned bucket_count = linear + (63 - sub_bits) * sub_buckets;

    static constexpr unsigned index_of(uint64_t value)
    {
        if (value < linear)
            return static_cast<unsigned>(value);
        // The top bit picks the power of two, the sub_bits below it the bucket in it.
        const auto shift = static_cast<unsigned>(std::bit_width(value)) - 1 - sub_bits;
        const auto sub = static_cast<unsigned>(value >> shift) - sub_buckets;
        return linear + (shift - 1) * sub_buckets + sub;
    }

    static constexpr unsigned shift_of(unsigned index)
    {
        return index < linear ? 0 : (index - linear) / sub_buckets + 1;
    }

    static constexpr uint64_t low_of(unsigned index)
    {
        if (index < linear)
            return index;
        return uint64_t{sub_buckets + (index - linear) % sub_buckets} << shift_of(index);
    }

    static constexpr uint64_t middle_of(unsigned index)
    {
        return low_of(index) + (uint64_t{1} << shift_of(index)) / 2;
    }

    std::array<uint64_t, bucket_count> buckets_{};
    uint64_t count_ = 0;
    uint64_t min_ = UINT64_MAX;
    uint64_t max_ = 0;
    double sum_ = 0;
};

} // namespace app

#endif
