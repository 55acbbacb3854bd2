// SPDX-License-Identifier: BSD-3-Clause
// The innermost loops of the limits: what two cores can do to each other with nothing in between.
// kernel.cpp is compiled once per instruction set; this header holds plain types only, so that no
// inline function built for a newer CPU can end up in code for an older one.
#ifndef BENCH_KERNEL_KERNEL_HPP
#define BENCH_KERNEL_KERNEL_HPP

#include <cstddef>
#include <cstdint>

namespace bench
{

inline constexpr size_t line_bytes = 64;

/// One word that one side writes and the other polls; two lines apart, because adjacent lines are
/// fetched in pairs.
struct alignas(128) Word {
    uint64_t value;
};

/// One line that travels in a ping-pong.
struct alignas(128) PingLine {
    uint64_t words[8];
};

/// What the writer does beside storing.
enum class Writer : uint32_t { plain, cldemote, prefetchw, nontemporal };
/// What the reader does with lines that it has read.
enum class Reader : uint32_t { plain, clwb, clflushopt, cldemote };
/// How a line of a ping-pong is stored: word by word, or as one vector.
enum class PingForm : uint32_t { word, line_by_words, line_by_vector };

struct PingJob {
    PingLine *mine;   ///< written here
    PingLine *theirs; ///< polled here
    PingForm form;
    bool starts;       ///< stores first
    uint64_t rounds;   ///< round trips
    uint64_t bound_ns; ///< gives up after that time
};

struct PingDone {
    uint64_t rounds; ///< those completed
    uint64_t ns;
    uint64_t bad; ///< lines whose words did not belong together
};

/// A ring of fixed slots between one writer and one reader; indices count from 0 in each run.
struct StreamJob {
    Word *head;        ///< slots written
    Word *tail;        ///< slots read
    Word *total;       ///< 0, or 1 + slots that were written in all
    std::byte *slots;  ///< line-aligned
    std::byte *source; ///< what slots are copied from; NULL: lines are made up in registers
    uint32_t slot_lines;
    uint32_t slot_count; ///< power of two, at least two batches
    uint32_t batch;      ///< slots per publish
    Writer writer;
    Reader reader;
    uint64_t run_ns;            ///< the writer stops after that time
    uint64_t bound_ns;          ///< both give up after that time
    uint32_t source_mask = 0;   ///< slots that the source holds, less one: taken in turn
    bool writes_source = false; ///< each word of it, before it is copied: to the slot's number
};

struct StreamDone {
    uint64_t slots;   ///< all that went through
    uint64_t counted; ///< those after warming up, which ns belongs to (reader only)
    uint64_t ns;
    uint64_t check; ///< sum over the first word of all lines read
};

struct Kernel {
    const char *name;
    PingDone (*ping)(const PingJob &);
    StreamDone (*write)(const StreamJob &);
    StreamDone (*read)(const StreamJob &);
    /// What an application does to a payload of whole lines, word-aligned: every word becomes
    /// @p value, and the sum over the first word of every line.
    void (*fill_payload)(std::byte *payload, size_t bytes, uint64_t value);
    uint64_t (*sum_payload)(const std::byte *payload, size_t bytes);
};

extern const Kernel kernel_sse2;
extern const Kernel kernel_avx2;
extern const Kernel kernel_avx512;

} // namespace bench

#endif
