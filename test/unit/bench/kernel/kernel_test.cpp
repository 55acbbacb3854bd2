// SPDX-License-Identifier: BSD-3-Clause
// A limit only counts if the payload really went across.
#include "kernel/kernels.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <thread>

using namespace bench;

namespace
{

constexpr uint64_t ms = 1000000;
constexpr uint64_t bound = 20000 * ms;
constexpr uint32_t slot_count = 128;
constexpr uint32_t copied_lines = 64;
constexpr uint64_t word = 0x0102030405060708u;

struct alignas(4096) Memory {
    Word head;
    Word tail;
    Word total;
    std::byte slots[slot_count * copied_lines * line_bytes];
    uint64_t source[copied_lines * line_bytes / sizeof(uint64_t)];
};

/// Both ends of a stream. @return what the reader saw
StreamDone stream(const Kernel &kernel, Writer writer, Reader reader, uint32_t lines, bool copied,
                  bool rewritten = false)
{
    const auto memory = std::make_unique<Memory>();
    for (uint64_t &w : memory->source)
        w = word;
    StreamJob job{&memory->head,
                  &memory->tail,
                  &memory->total,
                  memory->slots,
                  copied ? reinterpret_cast<std::byte *>(memory->source) : nullptr,
                  lines,
                  slot_count,
                  32,
                  writer,
                  reader,
                  ms,
                  bound,
                  0,
                  rewritten};
    StreamDone written{};
    std::thread other([&] { written = kernel.write(job); });
    const StreamDone read = kernel.read(job);
    other.join();
    EXPECT_EQ(read.slots, written.slots);
    EXPECT_GT(read.slots, 0u);
    return read;
}

void try_all(const Kernel &kernel)
{
    for (const Writer writer : supported_writers())
        for (const Reader reader : supported_readers()) {
            SCOPED_TRACE(std::string(kernel.name) + ", " + std::string(name_of(writer)) + ", " +
                         std::string(name_of(reader)));
            for (const uint32_t lines : {1u, 2u, 5u}) {
                const StreamDone done = stream(kernel, writer, reader, lines, false);
                EXPECT_EQ(done.check, done.slots * (done.slots - 1) / 2 * lines);
            }
            const StreamDone done = stream(kernel, writer, reader, copied_lines, true);
            EXPECT_EQ(done.check, done.slots * copied_lines * word);
            const StreamDone twice = stream(kernel, writer, reader, copied_lines, true, true);
            EXPECT_EQ(twice.check, twice.slots * (twice.slots - 1) / 2 * copied_lines)
                << "what is copied was written for each slot";
        }
}

} // namespace

TEST(Kernel, TheBaselineCarriesWhatWasWritten)
{
    try_all(kernel_sse2);
}

TEST(Kernel, TheBestOneCarriesWhatWasWritten)
{
    try_all(best_kernel());
}

TEST(Kernel, APayloadIsWrittenAndReadWhole)
{
    constexpr size_t lines = 5;
    for (const Kernel *kernel : {&kernel_sse2, &best_kernel()}) {
        alignas(line_bytes) uint64_t payload[(lines + 1) * 8] = {};
        uint64_t *const start = payload + 1; // as aligned as a payload has to be
        kernel->fill_payload(reinterpret_cast<std::byte *>(start), lines * line_bytes, 7);
        EXPECT_EQ(std::count(start, start + lines * 8, 7), static_cast<long>(lines * 8));
        EXPECT_EQ(payload[0], 0u);
        EXPECT_EQ(start[lines * 8], 0u);
        EXPECT_EQ(
            kernel->sum_payload(reinterpret_cast<const std::byte *>(start), lines * line_bytes),
            7 * lines);
    }
}

TEST(Kernel, EveryRoundTripIsMadeAndNoLineIsTorn)
{
    constexpr uint64_t rounds = 200;
    for (const PingForm form :
         {PingForm::word, PingForm::line_by_words, PingForm::line_by_vector}) {
        SCOPED_TRACE(name_of(form));
        PingLine lines[2] = {};
        PingDone second{};
        std::thread other([&] {
            second = best_kernel().ping({&lines[1], &lines[0], form, false, rounds, bound});
        });
        const PingDone first =
            best_kernel().ping({&lines[0], &lines[1], form, true, rounds, bound});
        other.join();
        EXPECT_EQ(first.rounds, rounds);
        EXPECT_EQ(second.rounds, rounds);
        EXPECT_EQ(first.bad + second.bad, 0u);
    }
}

TEST(Kernel, APartnerThatNeverComesEndsTheRun)
{
    PingLine lines[2] = {};
    EXPECT_EQ(best_kernel().ping({&lines[0], &lines[1], PingForm::word, true, 1, 10 * ms}).rounds,
              0u);
}
