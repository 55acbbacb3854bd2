// SPDX-License-Identifier: BSD-3-Clause
// A count that is not kept but derived: all there is, less the parts that are counted separately.
// One thread counts all of a burst, then its parts; another one reads both meanwhile.
#ifndef PLX_NTB_DEVICE_REST_COUNT_HPP
#define PLX_NTB_DEVICE_REST_COUNT_HPP

#include <algorithm>
#include <cstdint>

namespace plx::pmd
{

class RestCount
{
public:
    /// Read in this order.
    struct Counts {
        uint64_t all, parts;
    };
    /// The rest, as far as it is known: never less than the last time, and never more than there
    /// is. Under the lock of those who read.
    /// @param read   gives Counts of now
    /// @param quiet  whether the counting thread is outside its burst, or was at some moment of the
    /// call; what it did before is visible then
    template <class Read, class Quiet>
    uint64_t look(const Read &read, const Quiet &quiet)
    {
        const uint64_t all = read().all;
        // Until the parts of all that are in `all` are known to be counted: the thread has gone
        // out, or on to what comes next. A thread that stands still in between leaves it as it was.
        for (unsigned i = 0; i < looks_max; ++i) {
            if (!quiet() && read().all == all)
                continue;
            const uint64_t parts = read().parts;
            reported_ = std::max(reported_, all > parts ? all - parts : 0);
            break;
        }
        return reported_;
    }
    /// The counts begin at 0 again.
    void reset() { reported_ = 0; }

private:
    static constexpr unsigned looks_max = 256;
    uint64_t reported_ = 0;
};

} // namespace plx::pmd

#endif
