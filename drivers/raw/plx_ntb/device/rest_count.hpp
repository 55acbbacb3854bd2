// SPDX-License-Identifier: BSD-3-Clause
// A derived count: the total less the parts that are counted separately. One thread counts the
// total of a burst, then its parts, while another thread reads both.
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
    /// The difference as far as it is known: never less than at the last call, and never too much.
    /// Under the readers' lock.
    /// @param read   returns the present Counts
    /// @param quiet  whether the counting thread is outside its burst, or was at some moment of the
    /// call; what it did before is visible then
    template <class Read, class Quiet>
    uint64_t update(const Read &read, const Quiet &quiet)
    {
        const uint64_t all = read().all;
        // Waits until the parts of `all` are known to be counted: the thread has left its burst, or
        // counts the next one. If it stands still in between, the last value remains.
        for (unsigned i = 0; i < checks_max; ++i) {
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
    static constexpr unsigned checks_max = 256;
    uint64_t reported_ = 0;
};

} // namespace plx::pmd

#endif
