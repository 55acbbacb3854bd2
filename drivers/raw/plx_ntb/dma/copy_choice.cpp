// SPDX-License-Identifier: BSD-3-Clause
#include "dma/copy_choice.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace plx::pmd
{

namespace
{

constexpr size_t file_bytes_max = 4096;
constexpr char bad_point[] =
    "1 to 16 points bytes:cpu_ns:dma_ns, of whole numbers above 0, with rising sizes";

bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

void skip_blanks(const char *&at)
{
    while (is_blank(*at))
        at++;
}

/// Reads a number and the blanks around it. @return false: there is none, or it is not from 1 to
/// 2^32 - 1
bool take_number(const char *&at, uint32_t *out)
{
    skip_blanks(at);
    if (*at < '0' || *at > '9')
        return false;
    char *end = nullptr;
    errno = 0;
    const unsigned long long value = std::strtoull(at, &end, 10);
    if (errno != 0 || value == 0 || value > UINT32_MAX)
        return false;
    *out = static_cast<uint32_t>(value);
    at = end;
    skip_blanks(at);
    return true;
}

/// Skips the colon between numbers in devargs; in a file blanks separate them.
void take_colon(const char *&at)
{
    if (*at == ':')
        at++;
}

bool take_point(const char *&at, CopyPoint *out)
{
    if (!take_number(at, &out->bytes))
        return false;
    take_colon(at);
    if (!take_number(at, &out->cpu_ns))
        return false;
    take_colon(at);
    return take_number(at, &out->dma_ns);
}

/// Skips the separator between points. @return false: end of the text
bool next_point(const char *&at)
{
    for (;;) {
        while (*at == '\n' || *at == '/' || is_blank(*at))
            at++;
        if (*at != '#')
            return *at != '\0';
        at += std::strcspn(at, "\n");
    }
}

const char *read_points(const char *at, CopyCurve *out)
{
    CopyCurve curve;
    while (next_point(at)) {
        CopyPoint point;
        if (curve.count == CopyCurve::points_max || !take_point(at, &point) ||
            (curve.count > 0 && point.bytes <= curve.points[curve.count - 1].bytes) ||
            (*at != '\0' && *at != '/' && *at != '\n' && *at != '#'))
            return bad_point;
        curve.points[curve.count++] = point;
    }
    if (curve.count == 0)
        return bad_point;
    *out = curve;
    return nullptr;
}

const char *read_file(const char *path, CopyCurve *out)
{
    std::FILE *file = std::fopen(path, "re");
    if (file == nullptr)
        return "a file that can be read";
    char text[file_bytes_max + 1];
    const size_t length = std::fread(text, 1, sizeof(text), file);
    const bool bad = std::ferror(file) != 0;
    std::fclose(file);
    if (bad)
        return "a file that can be read";
    if (length > file_bytes_max)
        return "a file of at most 4096 bytes";
    text[length] = '\0';
    return read_points(text, out);
}

} // namespace

uint32_t crossover(const CopyCurve &curve)
{
    // In logarithms: a factor counts the same at every size.
    double gain = 0, best = 0;
    uint32_t from = 0;
    for (unsigned i = curve.count; i-- > 0;) {
        const CopyPoint &p = curve.points[i];
        gain += std::log2(dma_worth * p.cpu_ns / p.dma_ns);
        if (gain > best) {
            best = gain;
            from = p.bytes;
        }
    }
    return from;
}

bool wants_measuring(const CopyRequest &request)
{
    return request.mode == CopyMode::automatic && request.dma_min == 0 && request.curve.count == 0;
}

CopyChoice choose_copy(const CopyRequest &request, const CopyCurve &measured, uint32_t inline_max,
                       unsigned dma_queues)
{
    CopyChoice choice;
    choice.inline_max = inline_max;
    if (request.mode == CopyMode::cpu) {
        choice.why = "as asked for";
        return choice;
    }
    if (dma_queues == 0) {
        choice.why = "there is no DMA channel";
        return choice;
    }
    choice.dma_queues = dma_queues;
    if (request.mode == CopyMode::dma || request.dma_min != 0) {
        choice.dma_min = std::max(request.dma_min, inline_max + 1);
        choice.why = "as asked for";
        return choice;
    }
    choice.measured = request.curve.count == 0;
    choice.curve = choice.measured ? measured : request.curve;
    if (choice.curve.count == 0) {
        choice.why = "the engine could not be measured";
        return choice;
    }
    choice.dma_min = crossover(choice.curve);
    if (choice.dma_min == 0) {
        choice.why = choice.measured ? "it was measured and never pays"
                                     : "it never pays by the curve that was given";
        return choice;
    }
    choice.dma_min = std::max(choice.dma_min, inline_max + 1);
    choice.why = choice.measured ? "as measured" : "by the curve that was given";
    return choice;
}

void describe(const CopyChoice &choice, char *text, size_t size)
{
    if (choice.why[0] == '\0')
        std::snprintf(text, size, "how messages are copied is chosen when a peer connects");
    else if (choice.dma_min == 0)
        std::snprintf(text, size,
                      "messages inline up to %" PRIu32
                      " bytes, longer ones by CPU stores, none by DMA: %s",
                      choice.inline_max, choice.why);
    else
        std::snprintf(text, size,
                      "messages inline up to %" PRIu32
                      " bytes, longer ones by CPU stores, from %" PRIu32
                      " bytes on by DMA (on %u queue pairs): %s",
                      choice.inline_max, choice.dma_min, choice.dma_queues, choice.why);
}

void print_curve(const CopyCurve &curve, std::FILE *file)
{
    for (unsigned i = 0; i < curve.count; ++i) {
        const CopyPoint &p = curve.points[i];
        std::fprintf(file, "%s%" PRIu32 ":%" PRIu32 ":%" PRIu32, i > 0 ? "/" : "", p.bytes,
                     p.cpu_ns, p.dma_ns);
    }
}

const char *read_curve(const char *text, CopyCurve *out)
{
    if (text == nullptr || text[0] == '\0')
        return bad_point;
    return text[0] == '/' || text[0] == '.' ? read_file(text, out) : read_points(text, out);
}

} // namespace plx::pmd
