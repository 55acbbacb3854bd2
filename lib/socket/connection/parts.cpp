// SPDX-License-Identifier: BSD-3-Clause
#include "connection/halves.hpp"

#include <algorithm>
#include <limits>

namespace ntb::socket
{

std::size_t Parts::sum() const
{
    std::size_t total = 0;
    for (int i = 0; i < n_; i++)
        if (__builtin_add_overflow(total, parts_[i].iov_len, &total))
            return std::numeric_limits<ssize_t>::max();
    return std::min<std::size_t>(total, std::numeric_limits<ssize_t>::max());
}

int Parts::next(iovec *places, int room, std::size_t most) const
{
    int used = 0;
    std::size_t offset = offset_;
    for (int i = 0; i < n_ && used < room && most > 0; i++) {
        const std::size_t some = std::min(most, parts_[i].iov_len - offset);
        places[used++] = {static_cast<std::uint8_t *>(parts_[i].iov_base) + offset, some};
        most -= some;
        offset = 0;
    }
    return used;
}

} // namespace ntb::socket
