// SPDX-License-Identifier: BSD-3-Clause
// Write-backs that a fault keeps from memory for a while.
#ifndef PLX_TWIN_DMA_LATE_HPP
#define PLX_TWIN_DMA_LATE_HPP

#include <cstdint>

namespace plx::twin
{

struct DmaWriteBack {
    uint64_t slot = 0; ///< bus address of the descriptor
    uint32_t first_word = 0;
    uint64_t due = 0; ///< after so many register reads
};

/// First in, first out.
class DmaLate
{
public:
    ~DmaLate();
    /// @param reads after which a write-back arrives; 0: at once again
    /// @return 0 or -ENOMEM
    int set(uint32_t reads);
    bool on() const { return reads_ != 0; }
    void read_seen() { seen_++; }
    bool empty() const { return count_ == 0; }
    bool full() const { return count_ == room; }
    /// Not when full.
    void keep(const DmaWriteBack &done);
    bool keeps(uint64_t slot) const;
    /// The oldest, where it is due or @p all are to go.
    bool take(bool all, DmaWriteBack *out);
    void drop() { count_ = 0; }

private:
    static constexpr uint32_t room = 4096;
    DmaWriteBack *kept_ = nullptr;
    uint32_t first_ = 0;
    uint32_t count_ = 0;
    uint32_t reads_ = 0;
    uint64_t seen_ = 0;
};

} // namespace plx::twin

#endif
