// SPDX-License-Identifier: BSD-3-Clause
// Copies whose order others may rely on.
#ifndef PLX_TWIN_DMA_COPY_HPP
#define PLX_TWIN_DMA_COPY_HPP

#include <cstddef>
#include <cstdint>

#include <timed_choice.hpp>

namespace plx::twin
{

/// Copies for one engine, by one thread at a time. A card's engine has no cache that its stores
/// could pass through; this one has the CPU's, and goes through them or past them, whichever is
/// cheaper here and now.
class DmaCopier
{
public:
    // The thread sanitizer does not see stores past the caches.
#ifdef __SANITIZE_THREAD__
    static constexpr bool seen_alone = true;
#else
    static constexpr bool seen_alone = false;
#endif
    /// @param way  0: through the caches, at first; 1: past them. @param fixed  it is not left
    explicit DmaCopier(unsigned way = 0, bool fixed = seen_alone);
    /// Copies @p bytes; the ranges may overlap, as long as none is relied on then. Eight aligned
    /// bytes become visible at once. What earlier calls of this thread stored is visible to a
    /// thread that sees a byte of this one, unless both went past the caches.
    void copy(uint8_t *to, const uint8_t *from, size_t bytes);
    /// What was copied may become visible behind stores that follow, until settle().
    bool loose() const
    {
        return loose_;
    }
    /// Waits until all that was copied is visible: for as long as the last lines take to memory,
    /// so some copies should share it.
    void settle();

private:
    void copy_long(uint8_t *to, const uint8_t *from, size_t bytes);
    void copy_large(uint8_t *to, const uint8_t *from, size_t bytes);
    void copy_step(uint8_t *to, const uint8_t *from, size_t bytes);

    /// Copies whole lines by the vectors that this CPU has. @return bytes copied
    size_t (*const copy_lines_)(uint8_t *to, const uint8_t *from, size_t bytes);
    ntb::TimedChoice choice_;
    bool loose_ = false;
};

} // namespace plx::twin

#endif
