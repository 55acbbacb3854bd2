// SPDX-License-Identifier: BSD-3-Clause
// Chooses which messages are copied by the DMA engine and which by the CPU: by the user's request,
// and by a curve of costs over sizes that was measured or given. Pure logic.
#ifndef PLX_NTB_DMA_COPY_CHOICE_HPP
#define PLX_NTB_DMA_COPY_CHOICE_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace plx::pmd
{

/// Cost of a message of one size, until its last byte has left.
struct CopyPoint {
    uint32_t bytes;
    uint32_t cpu_ns;
    uint32_t dma_ns;
};

/// Sizes ascend, costs are not 0. No points: not known.
struct CopyCurve {
    static constexpr unsigned points_max = 16;
    CopyPoint points[points_max] = {};
    unsigned count = 0;
};

/// DMA must cost less than this share of the CPU's cost: it holds mbufs, which the CPU frees at
/// once.
inline constexpr double dma_worth = 8.0 / 9.0;

/// The smallest point from which on DMA is cheaper for all larger points together, so that a single
/// disturbed measurement does not decide. @return bytes; 0: none
uint32_t crossover(const CopyCurve &curve);

/// The values of the attribute copy_mode.
enum class CopyMode { automatic = 0, cpu = 1, dma = 2 };

/// The user's request.
struct CopyRequest {
    CopyMode mode = CopyMode::automatic;
    uint32_t dma_min = 0; ///< bytes; 0: not given
    CopyCurve curve = {}; ///< empty: to be measured
};

/// The result.
struct CopyChoice {
    uint32_t dma_min = 0;    ///< messages of at least so many bytes go by DMA; 0: none
    const char *why = "";    ///< the reason; empty: nothing was chosen yet
    CopyCurve curve = {};    ///< the curve that decided; empty: none
    bool measured = false;   ///< the curve was measured, not given
    unsigned dma_queues = 0; ///< queue pairs that have an engine
    uint32_t inline_max = 0; ///< bytes; up to here messages are inline
};

/// Whether the request leaves the choice to a curve that was not given.
bool wants_measuring(const CopyRequest &request);

/// @param measured  empty if nothing was measured
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
/// @return NULL, or what is wrong; *out is unchanged then
const char *read_curve(const char *text, CopyCurve *out);

} // namespace plx::pmd

#endif
