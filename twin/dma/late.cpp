// SPDX-License-Identifier: BSD-3-Clause
#include "dma/late.hpp"

#include <cerrno>
#include <new>

namespace plx::twin
{

DmaLate::~DmaLate()
{
    delete[] kept_;
}

int DmaLate::set(uint32_t reads)
{
    if (kept_ == nullptr)
        kept_ = new (std::nothrow) DmaWriteBack[room];
    if (kept_ == nullptr)
        return -ENOMEM;
    reads_ = reads;
    return 0;
}

void DmaLate::keep(const DmaWriteBack &done)
{
    kept_[(first_ + count_++) % room] = {done.slot, done.first_word, seen_ + reads_};
}

bool DmaLate::keeps(uint64_t slot) const
{
    for (uint32_t i = 0; i < count_; i++)
        if (kept_[(first_ + i) % room].slot == slot)
            return true;
    return false;
}

bool DmaLate::take(bool all, DmaWriteBack *out)
{
    if (count_ == 0 || (!all && kept_[first_].due > seen_))
        return false;
    *out = kept_[first_];
    first_ = (first_ + 1) % room;
    count_--;
    return true;
}

} // namespace plx::twin
