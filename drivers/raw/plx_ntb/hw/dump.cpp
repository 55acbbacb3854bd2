// SPDX-License-Identifier: BSD-3-Clause
#include "dump.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "facts/plx_fields.hpp"

namespace plx::hw
{

using facts::Block;
using facts::Reg;
using facts::Side;

namespace
{

// A read takes an element out of the monitor's FIFO (inferred).
bool read_has_effect(const Reg &r)
{
    return r.name == "PERF_MONITOR_FIFO";
}

bool forbidden(const Identity &id, uint32_t csr)
{
    return id.quirks.has(Quirk::forbidden_csrs) &&
           std::find(std::begin(facts::forbidden_draco1), std::end(facts::forbidden_draco1), csr) !=
               std::end(facts::forbidden_draco1);
}

void print_fields(const Reg &r, uint32_t value, FILE *out)
{
    for (const facts::Field &f : facts::fields) {
        const bool whole = f.msb == 31 && f.lsb == 0;
        if (f.reg == r.name && !whole)
            fprintf(out, "        %-28.*s %#x\n", static_cast<int>(f.name.size()), f.name.data(),
                    f.get(value));
    }
}

/// Calls @p each (register, element, CSR offset, whether it may be read) for a whole block.
template <class Each>
void walk(const Identity &id, Block block, uint32_t base, Each each)
{
    for (const Reg &r : facts::regs) {
        if (r.block != block)
            continue;
        for (uint32_t i = 0; i < r.count; i++) {
            const uint32_t csr = base + r.offset + i * r.stride;
            each(r, i, csr, !read_has_effect(r) && !forbidden(id, csr));
        }
    }
}

void print_block(const RegIo &io, const Identity &id, Block block, uint32_t base, FILE *out)
{
    walk(id, block, base, [&](const Reg &r, uint32_t i, uint32_t csr, bool readable) {
        fprintf(out, "  %05x %.*s", csr, static_cast<int>(r.name.size()), r.name.data());
        if (r.count > 1)
            fprintf(out, "[%u]", i);
        if (!readable) {
            fprintf(out, " not read\n");
            return;
        }
        const uint32_t value = io.read32(csr);
        fprintf(out, " = %08x\n", value);
        print_fields(r, value, out);
    });
}

/// A part of the chip: up to two kinds of registers that share a block.
struct Part {
    uint32_t base;
    Block blocks[2];
    unsigned count;
};

bool find_part(const Identity &id, std::string_view name, Part *out)
{
    constexpr std::string_view dma = "dma";
    if (name == "chip")
        *out = {0, {Block::chip}, 1};
    else if (name == "station")
        *out = {facts::station_base(id.nt_port), {Block::station}, 1};
    else if (name == "upstream_port")
        *out = {facts::port_base(id.upstream_port), {Block::port}, 1};
    else if (name == "nt_port")
        *out = {facts::port_base(id.nt_port), {Block::port}, 1};
    else if (name == "nt_virtual")
        *out = {facts::nt_base(id.nt, Side::virt), {Block::nt_both, Block::nt_virtual}, 2};
    else if (name == "nt_link")
        *out = {facts::nt_base(id.nt, Side::link), {Block::nt_both, Block::nt_link}, 2};
    else if (name.size() == dma.size() + 1 && name.starts_with(dma) && name.back() >= '0' &&
             name.back() < '0' + static_cast<int>(facts::dma_function_count))
        *out = {facts::dma_base(static_cast<unsigned>(name.back() - '0')), {Block::dma}, 1};
    else
        return false;
    return true;
}

void print_nt(const RegIo &io, const Identity &id, Side side, FILE *out)
{
    const uint32_t base = facts::nt_base(id.nt, side);
    fprintf(out, "NT%u %s block\n", id.nt, side == Side::virt ? "virtual" : "link");
    print_block(io, id, Block::nt_both, base, out);
    print_block(io, id, side == Side::virt ? Block::nt_virtual : Block::nt_link, base, out);
}

void print_alut(const RegIo &io, const Identity &id, FILE *out)
{
    if (id.alut_entries == 0)
        return;
    const uint32_t base = facts::alut_array(id.nt, Side::link, id.alut_entries);
    if (id.quirks.has(Quirk::alut_unreadable)) {
        fprintf(out, "A-LUT RAM at %05x: not read (E6)\n", base);
        return;
    }
    fprintf(out, "A-LUT RAM at %05x\n", base);
    print_block(io, id, Block::alut, base, out);
}

void print_dma(const RegIo &io, const Identity &id, FILE *out)
{
    for (unsigned f = 0; f < facts::dma_function_count; f++) {
        const uint32_t base = facts::dma_base(f);
        const uint32_t who = io.read32(base);
        if (who == 0 || who == ~uint32_t{0}) {
            fprintf(out, "DMA function %u: absent\n", f);
            continue;
        }
        fprintf(out, "DMA function %u\n", f);
        print_block(io, id, Block::dma, base, out);
    }
}

void print_ports(const RegIo &io, const Identity &id, FILE *out)
{
    for (const unsigned port : {unsigned{id.upstream_port}, unsigned{id.nt_port}}) {
        fprintf(out, "Port %u (%s)\n", port, port == id.nt_port ? "NT" : "upstream");
        print_block(io, id, Block::port, facts::port_base(port), out);
    }
}

// Of the stations those are of interest that have the NT port, or the test-pattern registers of
// this NT number; they may be one.
void print_stations(const RegIo &io, const Identity &id, FILE *out)
{
    const uint32_t of_port = facts::station_base(id.nt_port);
    const uint32_t of_pattern = facts::station_base(id.nt * facts::ports_per_station);
    fprintf(out, "Station at %05x\n", of_port);
    print_block(io, id, Block::station, of_port, out);
    if (of_pattern == of_port)
        return;
    fprintf(out, "Station at %05x\n", of_pattern);
    print_block(io, id, Block::station, of_pattern, out);
}

const char *family_name(const Identity &id)
{
    return facts::family_facts(id.family).name.data();
}

} // namespace

void dump(const RegIo &io, const Identity &id, FILE *out)
{
    fprintf(out, "Part %04x revision %02x (%s), NT%u %s side, port %u, upstream %u, A-LUT %u\n",
            id.part, id.revision, family_name(id), id.nt,
            id.side == Side::virt ? "virtual" : "link", id.nt_port, id.upstream_port,
            id.alut_entries);
    fprintf(out, "Chip\n");
    print_block(io, id, Block::chip, 0, out);
    print_stations(io, id, out);
    print_ports(io, id, out);
    print_nt(io, id, Side::virt, out);
    print_nt(io, id, Side::link, out);
    print_alut(io, id, out);
    print_dma(io, id, out);
}

int read_part(const RegIo &io, const Identity &id, std::string_view name,
              void (*each)(const RegValue &, void *arg), void *arg)
{
    Part part;
    if (!find_part(id, name, &part))
        return -EINVAL;
    for (unsigned b = 0; b < part.count; b++)
        walk(id, part.blocks[b], part.base,
             [&](const Reg &r, uint32_t i, uint32_t csr, bool readable) {
                 if (readable)
                     each({r.name, r.count, i, csr, io.read32(csr)}, arg);
             });
    return 0;
}

void dump_quirks(const Identity &id, FILE *out)
{
    for (const QuirkRow &row : quirk_rows)
        if (row.bit != Quirk::none && id.quirks.has(row.bit))
            fprintf(out, "E%u: %s (%s): %s\n", row.number, row.what, row.source, row.answer);
}

} // namespace plx::hw
