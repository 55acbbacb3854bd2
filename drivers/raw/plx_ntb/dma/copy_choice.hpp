// SPDX-License-Identifier: BSD-3-Clause
// Which messages go by the DMA engine and which by the CPU's stores: from what a user asked for,
// and from a curve of costs by size that was measured or given. Pure logic.
#ifndef PLX_NTB_DMA_COPY_CHOICE_HPP
#define PLX_NTB_DMA_COPY_CHOICE_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace plx::pmd
{

/// What a message of one size costs, from its first byte until the last is on its way.
struct CopyPoint {
    uint32_t bytes;
    uint32_t cpu_ns;
    uint32_t dma_ns;
};

/// Sizes rise from point to point, costs are not 0. No points: not known.
struct CopyCurve {
    static constexpr unsigned points_max = 16;
    CopyPoint points[points_max] = {};
    unsigned count = 0;
};

/// DMA has to cost less than this part of what the CPU costs: it holds mbufs, which the CPU gives
/// back at once.
inline constexpr double dma_worth = 8.0 / 9.0;

/// Size of a point from which on DMA is worth it, taking all larger points together, so that one
/// that was measured in a bad moment decides nothing. @return bytes; 0: never
uint32_t crossover(const CopyCurve &curve);

/// The attribute copy_mode has these numbers.
enum class CopyMode { automatic = 0, cpu = 1, dma = 2 };

/// What a user asked for.
struct CopyRequest {
    CopyMode mode = CopyMode::automatic;
    uint32_t dma_min = 0; ///< bytes; 0: not given
    CopyCurve curve = {}; ///< empty: to be measured
};

/// What came of it.
struct CopyChoice {
    uint32_t dma_min = 0;    ///< messages of at least so many bytes go by DMA; 0: none
    const char *why = "";    ///< in words; empty: nothing was chosen yet
    CopyCurve curve = {};    ///< what it was decided by; empty: by nothing of the kind
    bool measured = false;   ///< the curve was measured, not given
    unsigned dma_queues = 0; ///< queue pairs that have an engine
    uint32_t inline_max = 0; ///< bytes; up to here messages travel inside the ring
};

/// Whether the request leaves the choice to a curve that was not given.
bool wants_measuring(const CopyRequest &request);

/// @param measured  empty where nothing was measured
/// @param inline_max  messages up to here never go by DMA
CopyChoice choose_copy(const CopyRequest &request, const CopyCurve &measured, uint32_t inline_max,
                       unsigned dma_queues);

/// The choice in one line. @param size at least copy_text_bytes, else the line is cut
inline constexpr size_t copy_text_bytes = 192;
void describe(const CopyChoice &choice, char *text, size_t size);

/// A curve as read_curve() reads it.
void print_curve(const CopyCurve &curve, std::FILE *file);

/// Reads a curve: points of three numbers `bytes:cpu_ns:dma_ns`, separated by `/`; or, where the
/// text begins with `/` or `.`, from the file of that name, a point a line, the numbers separated
/// by blanks, `#` before a comment.
/// @return NULL, or in words what is wrong; *out is untouched then
const char *read_curve(const char *text, CopyCurve *out);

} // namespace plx::pmd

#endif
