// SPDX-License-Identifier: BSD-3-Clause
#include "connection/halves.hpp"

#include <algorithm>
#include <limits>

namespace ntb::socket
{

std::size_t Parts::total() const
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

void Parts::skip(std::size_t bytes)
{
    while (n_ > 0 && bytes >= parts_->iov_len - offset_) {
        bytes -= parts_->iov_len - offset_;
        offset_ = 0;
        parts_++;
        n_--;
    }
    offset_ += bytes;
}

void Parts::copy_into(const Ring &ring, std::uint64_t position, std::size_t bytes)
{
    for (iovec one; bytes > 0 && next(&one, 1, bytes) > 0; bytes -= one.iov_len) {
        ring.copy_in(position, one.iov_base, one.iov_len);
        position += one.iov_len;
        skip(one.iov_len);
    }
}

void Parts::copy_from(const Ring &ring, std::uint64_t position, std::size_t bytes)
{
    for (iovec one; bytes > 0 && next(&one, 1, bytes) > 0; bytes -= one.iov_len) {
        ring.copy_out(one.iov_base, position, one.iov_len);
        position += one.iov_len;
        skip(one.iov_len);
    }
}

} // namespace ntb::socket
