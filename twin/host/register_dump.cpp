// SPDX-License-Identifier: BSD-3-Clause
#include "host/register_dump.hpp"

#include "host/error.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <plx_ids.hpp>
#include <plx_regs.hpp>

namespace plx::twin
{

namespace
{

constexpr char heading[] = "# plx-registers 1 ";
constexpr uint32_t words_max = facts::bar0_size / 4;

/// A hexadecimal number that ends at a blank or at the end of the text. @return behind it, or NULL
const char *take_hex(const char *text, uint64_t most, uint64_t *out)
{
    constexpr size_t digits_max = 16;
    const size_t digits = strspn(text, "0123456789abcdefABCDEF");
    const char *end = text + digits;
    if (digits == 0 || digits > digits_max || (*end != '\0' && *end != ' ' && *end != '\n'))
        return nullptr;
    *out = strtoull(text, nullptr, 16);
    return *out <= most ? end : nullptr;
}

/// @return NULL, or what was expected
const char *take_line(const char *line, RegisterWord *out)
{
    uint64_t offset = 0;
    uint64_t value = 0;
    const char *rest = take_hex(line, facts::bar0_size - 4, &offset);
    if (rest == nullptr || offset % 4 != 0)
        return "an offset below 40000 that is a multiple of 4, in hex";
    rest = take_hex(rest + strspn(rest, " "), UINT32_MAX, &value);
    if (rest == nullptr)
        return "an offset and a value of 32 bits, in hex";
    *out = {static_cast<uint32_t>(offset), static_cast<uint32_t>(value)};
    return nullptr;
}

int read_lines(FILE *in, const char *path, RegisterDump *out, Error *error)
{
    char line[256];
    if (fgets(line, sizeof(line), in) == nullptr ||
        strncmp(line, heading, sizeof(heading) - 1) != 0)
        return fail(error, -EINVAL, "%s: line 1: expected \"%s...\", as plx-doctor regs prints it",
                    path, heading);
    for (unsigned number = 2; fgets(line, sizeof(line), in) != nullptr; number++) {
        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (out->count == words_max)
            return fail(error, -EFBIG, "%s: line %u: more words than a chip has", path, number);
        const char *expected = strchr(line, '\n') == nullptr && feof(in) == 0
                                   ? "at most 255 characters"
                                   : take_line(line, &out->words[out->count]);
        if (expected != nullptr)
            return fail(error, -EINVAL, "%s: line %u: expected %s", path, number, expected);
        out->count++;
    }
    return ferror(in) != 0 ? fail(error, -EIO, "%s: cannot be read to its end", path) : 0;
}

} // namespace

int register_dump_read(const char *path, RegisterDump *out, Error *error)
{
    FILE *in = fopen(path, "re");
    if (in == nullptr)
        return fail(error, -errno, "%s: %s", path, strerror(errno));
    RegisterDump file;
    file.words = static_cast<RegisterWord *>(malloc(words_max * sizeof(RegisterWord)));
    const int code = file.words == nullptr ? fail(error, -ENOMEM, "no memory for %s", path)
                                           : read_lines(in, path, &file, error);
    fclose(in);
    if (code != 0)
        register_dump_free(&file);
    else
        *out = file;
    return code;
}

void register_dump_free(RegisterDump *file)
{
    free(file->words);
    *file = {};
}

} // namespace plx::twin
