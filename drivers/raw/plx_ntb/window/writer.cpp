// SPDX-License-Identifier: BSD-3-Clause
#include "window/writer.hpp"

#include <algorithm>

#include "queue/wire.hpp"

namespace plx::pmd
{

void Writer::store(std::byte *to, const std::byte *from, size_t bytes)
{
    while (bytes > 0) {
        const size_t n = std::min(bytes, step_bytes);
        store_step(to, from, n);
        to += n;
        from += n;
        bytes -= n;
    }
}

void Writer::store_step(std::byte *to, const std::byte *from, size_t bytes)
{
    const unsigned before = choice_.in_force();
    const uint64_t begin = setup_.cycles();
    if (static_cast<queue::Stores>(choice_.way()) == queue::Stores::plain)
        setup_.ops->copy(to, from, bytes);
    else
        setup_.ops->copy_past(to, from, bytes);
    choice_.took(bytes / wire::line_bytes, setup_.cycles() - begin);
    if (choice_.in_force() != before)
        setup_.learned->store(static_cast<queue::Stores>(choice_.in_force()),
                              std::memory_order_relaxed);
}

} // namespace plx::pmd
