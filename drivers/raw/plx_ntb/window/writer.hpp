// SPDX-License-Identifier: BSD-3-Clause
// Long stores through the memory window, of one thread.
#ifndef PLX_NTB_WINDOW_WRITER_HPP
#define PLX_NTB_WINDOW_WRITER_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <timed_choice.hpp>

#include "queue/queue.hpp"

namespace plx::pmd
{

/// What the writers of a device share: the way that was found last.
using LearnedStores = std::atomic<queue::Stores>;

struct WriterSetup {
    const queue::Ops *ops;
    LearnedStores *learned;
    bool fixed; ///< what was learned stays
    uint64_t (*cycles)();
};

/// The two ways are distinguished by the time that the stores themselves take: it is this CPU that
/// waits for lines which the reader's caches hold. What the reader waits for does not show, and is
/// estimated.
class Writer
{
public:
    explicit Writer(const WriterSetup &setup)
        : setup_(setup),
          choice_(static_cast<unsigned>(setup.learned->load(std::memory_order_relaxed)),
                  setup.fixed, ntb::TimedChoice::of_stores)
    {
    }
    void store(std::byte *to, const std::byte *from, size_t bytes);

private:
    /// Longer ones are cut, so that little is tried at once.
    static constexpr size_t step_bytes = 65536;

    void store_step(std::byte *to, const std::byte *from, size_t bytes);

    const WriterSetup setup_;
    ntb::TimedChoice choice_;
};

} // namespace plx::pmd

#endif
