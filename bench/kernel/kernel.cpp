// SPDX-License-Identifier: BSD-3-Clause
// Compiled once per instruction set with BENCH_KERNEL naming the table it defines. Only compiler
// builtins and C functions here: see kernel.hpp.
#include "kernel/kernel.hpp"

#include <time.h>

namespace bench
{
namespace
{

#define BENCH_INLINE inline __attribute__((always_inline))

// The widest vector that the instruction set has. A wider one is built in memory by GCC 12: a sum
// of lines in one 64-byte vector took 28 cycles a line with AVX2, more than the lines did.
#if defined(__AVX512F__)
constexpr size_t vector_bytes = 64;
#elif defined(__AVX2__)
constexpr size_t vector_bytes = 32;
#else
constexpr size_t vector_bytes = 16;
#endif
using Vector = uint64_t __attribute__((vector_size(vector_bytes), may_alias));
/// Where a vector lies: at its own alignment, or anywhere. Structures, since a template forgets the
/// smaller alignment of a type that is not one.
struct [[gnu::may_alias]] Whole {
    Vector value;
};
struct [[gnu::packed, gnu::may_alias]] Loose
{
    Vector value;
};
static_assert(alignof(Loose) == 1);

constexpr size_t parts_of_line = line_bytes / vector_bytes;
struct Line {
    Vector part[parts_of_line];
};

constexpr uint64_t polls_per_clock = 4096; ///< between two reads of the clock, waiting

uint64_t now_ns()
{
    timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return static_cast<uint64_t>(ts.tv_sec) * 1000000000u + static_cast<uint64_t>(ts.tv_nsec);
}

BENCH_INLINE uint64_t acquire(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

BENCH_INLINE void release(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

BENCH_INLINE void broadcast(Line &line, uint64_t value)
{
    for (Vector &part : line.part)
        part = Vector{} + value;
}

/// @tparam From Whole, or Loose where the line need not be aligned
template <typename From = Whole>
BENCH_INLINE void load(Line &line, const std::byte *from)
{
    for (size_t i = 0; i < parts_of_line; i++)
        line.part[i] = reinterpret_cast<const From *>(from)[i].value;
}

template <typename To = Whole>
BENCH_INLINE void store(std::byte *to, const Line &line)
{
    for (size_t i = 0; i < parts_of_line; i++)
        reinterpret_cast<To *>(to)[i].value = line.part[i];
}

template <typename From = Whole>
BENCH_INLINE void add(Line &sum, const std::byte *from)
{
    for (size_t i = 0; i < parts_of_line; i++)
        sum.part[i] += reinterpret_cast<const From *>(from)[i].value;
}

// Ping-pong ---------------------------------------------------------------------------------------

// A whole line in one access, which only AVX-512 has. By instruction: left to itself the compiler
// splits the access into a look at one word and another at the line.
#if defined(__AVX512F__)
BENCH_INLINE void store_whole(PingLine &line, const Line &content)
{
    asm volatile("vmovdqa64 %1, %0" : "=m"(line.words) : "v"(content.part[0]) : "memory");
}

BENCH_INLINE void load_whole(const PingLine &line, Line &content)
{
    asm volatile("vmovdqa64 %1, %0" : "=v"(content.part[0]) : "m"(line.words) : "memory");
}
#endif

BENCH_INLINE void store_words(PingLine &line, uint64_t value)
{
    for (int i = 0; i < 7; i++)
        __atomic_store_n(&line.words[i], value, __ATOMIC_RELAXED);
    release(&line.words[7], value);
}

template <PingForm form>
BENCH_INLINE void store_line(PingLine &line, uint64_t value)
{
    if constexpr (form == PingForm::word) {
        release(&line.words[0], value);
        return;
    }
#if defined(__AVX512F__)
    if constexpr (form == PingForm::line_by_vector) {
        Line content;
        broadcast(content, value);
        store_whole(line, content);
        return;
    }
#endif
    store_words(line, value);
}

/// One look at a line that has been stored word by word.
BENCH_INLINE bool words_are(const PingLine &line, uint64_t value, uint64_t &bad)
{
    if (acquire(&line.words[7]) != value)
        return false;
    uint64_t differs = 0;
    for (int i = 0; i < 7; i++)
        differs |= __atomic_load_n(&line.words[i], __ATOMIC_RELAXED) ^ value;
    bad += differs != 0;
    return true;
}

/// One look. @return whether the line has come; its words are read, and counted if they disagree.
template <PingForm form>
BENCH_INLINE bool line_is(const PingLine &line, uint64_t value, uint64_t &bad)
{
    if constexpr (form == PingForm::word)
        return acquire(&line.words[0]) == value;
#if defined(__AVX512F__)
    if constexpr (form == PingForm::line_by_vector) {
        Line content;
        load_whole(line, content);
        if (content.part[0][7] != value)
            return false;
        uint64_t differs = 0;
        for (int i = 0; i < 7; i++)
            differs |= content.part[0][i] ^ value;
        bad += differs != 0;
        return true;
    }
#endif
    return words_are(line, value, bad);
}

template <PingForm form>
BENCH_INLINE bool await_line(const PingLine &line, uint64_t value, uint64_t give_up, uint64_t &bad)
{
    for (;;) {
        for (uint64_t spin = 0; spin < polls_per_clock; spin++)
            if (line_is<form>(line, value, bad))
                return true;
        if (now_ns() > give_up)
            return false;
    }
}

template <PingForm form>
PingDone ping_as(const PingJob &job)
{
    PingDone done{};
    const uint64_t begin = now_ns();
    const uint64_t give_up = begin + job.bound_ns;
    for (uint64_t round = 1; round <= job.rounds; round++) {
        if (job.starts)
            store_line<form>(*job.mine, round);
        if (!await_line<form>(*job.theirs, round, give_up, done.bad))
            break;
        if (!job.starts)
            store_line<form>(*job.mine, round);
        done.rounds = round;
    }
    done.ns = now_ns() - begin;
    return done;
}

PingDone ping(const PingJob &job)
{
    switch (job.form) {
    case PingForm::line_by_words:
        return ping_as<PingForm::line_by_words>(job);
    case PingForm::line_by_vector:
        return ping_as<PingForm::line_by_vector>(job);
    case PingForm::word:
        break;
    }
    return ping_as<PingForm::word>(job);
}

// Stream: writer ----------------------------------------------------------------------------------

BENCH_INLINE void cldemote(const std::byte *line)
{
    // A no-operation on a CPU without it. By its bytes: assemblers and compilers of the supported
    // releases differ in the options with which they know its name.
    asm volatile(".byte 0x0f, 0x1c, 0x00" ::"a"(line) : "memory");
}

template <Writer writer>
BENCH_INLINE void store_data(std::byte *to, const Line &content)
{
    if constexpr (writer != Writer::nontemporal) {
        store(to, content);
        return;
    }
    for (size_t i = 0; i < parts_of_line; i++) {
        Vector *part = reinterpret_cast<Vector *>(to) + i;
#if defined(__clang__)
        __builtin_nontemporal_store(content.part[i], part);
#elif defined(__AVX2__)
        asm volatile("vmovntdq %1, %0" : "=m"(*part) : "v"(content.part[i]));
#else
        asm volatile("movntdq %1, %0" : "=m"(*part) : "x"(content.part[i]));
#endif
    }
}

void fill_payload(std::byte *payload, size_t bytes, uint64_t value);

/// Compile-time line count where a slot is small (lines > 0): the loop must cost nothing there.
template <Writer writer, unsigned lines>
BENCH_INLINE void fill_slot(const StreamJob &job, std::byte *slot, uint64_t number)
{
    const size_t count = lines != 0 ? lines : job.slot_lines;
    std::byte *source = nullptr;
    if constexpr (lines == 0) {
        source = job.source + (number & job.source_mask) * count * line_bytes;
        if (job.writes_source) {
            fill_payload(source, count * line_bytes, number);
            asm volatile("" ::: "memory"); // two passes, as by two that do not know each other
        }
    }
    Line content;
    broadcast(content, number);
    for (size_t i = 0; i < count; i++) {
        if constexpr (lines == 0)
            load(content, source + i * line_bytes);
        store_data<writer>(slot + i * line_bytes, content);
        if constexpr (writer == Writer::cldemote)
            cldemote(slot + i * line_bytes);
    }
}

template <unsigned lines>
BENCH_INLINE std::byte *slot_at(const StreamJob &job, uint64_t number)
{
    const size_t bytes = (lines != 0 ? lines : job.slot_lines) * line_bytes;
    return job.slots + (number & (job.slot_count - 1)) * bytes;
}

template <Writer writer, unsigned lines>
BENCH_INLINE void fill_batch(const StreamJob &job, uint64_t first)
{
    for (uint64_t i = 0; i < job.batch; i++) {
        if constexpr (writer == Writer::prefetchw) {
            // One batch ahead: early enough to overlap, late enough not to take what is being read.
            std::byte *ahead = slot_at<lines>(job, first + i + job.batch);
            for (size_t l = 0; l < (lines != 0 ? lines : job.slot_lines); l++)
                __builtin_prefetch(ahead + l * line_bytes, 1, 3);
        }
        fill_slot<writer, lines>(job, slot_at<lines>(job, first + i), first + i);
    }
    if constexpr (writer == Writer::nontemporal)
        asm volatile("sfence" ::: "memory"); // before the index, which is an ordinary store
}

/// Waits until another batch fits. @return false when time is up
BENCH_INLINE bool await_room(const StreamJob &job, uint64_t written, uint64_t &read,
                             uint64_t give_up)
{
    uint64_t spin = 0;
    while (written + job.batch - read > job.slot_count) {
        read = acquire(&job.tail->value);
        if (++spin % polls_per_clock == 0 && now_ns() > give_up)
            return false;
    }
    return true;
}

template <Writer writer, unsigned lines>
StreamDone write_as(const StreamJob &job)
{
    constexpr uint64_t batches_per_clock = 16;
    const uint64_t begin = now_ns();
    uint64_t written = 0;
    uint64_t read = 0;
    for (uint64_t batches = 1;; batches++) {
        if (!await_room(job, written, read, begin + job.bound_ns))
            break;
        fill_batch<writer, lines>(job, written);
        written += job.batch;
        release(&job.head->value, written);
        if (batches % batches_per_clock == 0 && now_ns() - begin > job.run_ns)
            break;
    }
    release(&job.total->value, written + 1);
    return {written, 0, now_ns() - begin, 0};
}

/// Calls @p run with the lines of a slot as a constant, where they are one; 0 is any number.
template <typename Run>
StreamDone with_lines(const StreamJob &job, Run run)
{
    switch (job.source ? 0 : job.slot_lines) {
    case 0:
        return run.template operator()<0>();
    case 1:
        return run.template operator()<1>();
    case 2:
        return run.template operator()<2>();
    case 5:
        return run.template operator()<5>();
    default:
        return {};
    }
}

template <Writer writer>
StreamDone write_with(const StreamJob &job)
{
    return with_lines(job, [&]<unsigned lines>() { return write_as<writer, lines>(job); });
}

StreamDone write(const StreamJob &job)
{
    switch (job.writer) {
    case Writer::cldemote:
        return write_with<Writer::cldemote>(job);
    case Writer::prefetchw:
        return write_with<Writer::prefetchw>(job);
    case Writer::nontemporal:
        return write_with<Writer::nontemporal>(job);
    case Writer::plain:
        break;
    }
    return write_with<Writer::plain>(job);
}

// Stream: reader ----------------------------------------------------------------------------------

template <Reader reader>
BENCH_INLINE void hint(std::byte *line)
{
    if constexpr (reader == Reader::clwb)
        asm volatile("clwb %0" : "+m"(*reinterpret_cast<volatile char *>(line)));
    else if constexpr (reader == Reader::clflushopt)
        asm volatile("clflushopt %0" : "+m"(*reinterpret_cast<volatile char *>(line)));
    else if constexpr (reader == Reader::cldemote)
        cldemote(line);
}

template <Reader reader, unsigned lines>
BENCH_INLINE void read_batch(const StreamJob &job, uint64_t first, uint64_t count, Line &sum)
{
    const size_t slot_lines = lines != 0 ? lines : job.slot_lines;
    for (uint64_t i = first; i < first + count; i++)
        for (size_t l = 0; l < slot_lines; l++)
            add(sum, slot_at<lines>(job, i) + l * line_bytes);
    if constexpr (reader != Reader::plain)
        for (uint64_t i = first; i < first + count; i++)
            for (size_t l = 0; l < slot_lines; l++)
                hint<reader>(slot_at<lines>(job, i) + l * line_bytes);
}

/// @return whether the writer has ended and everything is read
BENCH_INLINE bool all_read(const StreamJob &job, uint64_t read)
{
    return acquire(&job.total->value) == read + 1;
}

template <Reader reader, unsigned lines>
StreamDone read_as(const StreamJob &job)
{
    StreamDone done{};
    const uint64_t give_up = now_ns() + job.bound_ns;
    const uint64_t warm = 2 * job.slot_count; // two laps: every line has been in both caches
    uint64_t begin = 0;
    uint64_t begin_at = 0;
    Line sum{};
    for (uint64_t spin = 1;; spin++) {
        const uint64_t head = acquire(&job.head->value);
        if (head == done.slots) {
            if (spin % 64 == 0 && all_read(job, done.slots))
                break;
            if (spin % polls_per_clock == 0 && now_ns() > give_up)
                break;
            continue;
        }
        const uint64_t ready = head - done.slots;
        const uint64_t count = ready < job.batch ? ready : job.batch;
        read_batch<reader, lines>(job, done.slots, count, sum);
        done.slots += count;
        release(&job.tail->value, done.slots);
        if (begin == 0 && done.slots >= warm) {
            begin = now_ns();
            begin_at = done.slots;
        }
    }
    done.ns = begin != 0 ? now_ns() - begin : 0;
    done.counted = done.slots - begin_at;
    done.check = sum.part[0][0];
    return done;
}

template <Reader reader>
StreamDone read_with(const StreamJob &job)
{
    return with_lines(job, [&]<unsigned lines>() { return read_as<reader, lines>(job); });
}

StreamDone read(const StreamJob &job)
{
    switch (job.reader) {
    case Reader::clwb:
        return read_with<Reader::clwb>(job);
    case Reader::clflushopt:
        return read_with<Reader::clflushopt>(job);
    case Reader::cldemote:
        return read_with<Reader::cldemote>(job);
    case Reader::plain:
        break;
    }
    return read_with<Reader::plain>(job);
}

// Payload of a message ----------------------------------------------------------------------------

[[gnu::noinline]] void fill_payload(std::byte *payload, size_t bytes, uint64_t value)
{
    Line content;
    broadcast(content, value);
    for (size_t at = 0; at < bytes; at += line_bytes)
        store<Loose>(payload + at, content);
}

uint64_t sum_payload(const std::byte *payload, size_t bytes)
{
    Line sum{};
    for (size_t at = 0; at < bytes; at += line_bytes)
        add<Loose>(sum, payload + at);
    return sum.part[0][0];
}

#define BENCH_TEXT_(x) #x
#define BENCH_TEXT(x) BENCH_TEXT_(x)

} // namespace

const Kernel BENCH_KERNEL = {
    BENCH_TEXT(BENCH_KERNEL), ping, write, read, fill_payload, sum_payload};

} // namespace bench
