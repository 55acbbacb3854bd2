// SPDX-License-Identifier: BSD-3-Clause
#include "chip/register_map.hpp"

#include "chip/capabilities.hpp"
#include "chip/dma_regs.hpp"

namespace plx::twin
{

namespace
{
using facts::Access;
using facts::Block;
using facts::Side;
namespace reg = facts::reg;

constexpr uint32_t words_per_page = facts::block_size / 4;

struct Layout {
    Kind kind[page_kinds][words_per_page];
};

// `unknown` means that no source says; plain storage is the likeliest answer. `mixed` registers
// are storage with the masks that registers.cpp gives them.
constexpr Kind kind_of(Access access)
{
    switch (access) {
    case Access::ro:
        return Kind::ro;
    case Access::w1s:
        return Kind::w1s;
    case Access::w1c:
        return Kind::w1c;
    default:
        return Kind::rw;
    }
}

// A DMA function has the header and the capabilities of the NT endpoints (1.6).
constexpr bool is_header(const facts::Reg &r)
{
    return r.block == Block::nt_both && r.offset < dma_reg::global_control;
}

constexpr bool is_in(const facts::Reg &r, Page page)
{
    switch (r.block) {
    case Block::chip:
        return page == port0;
    case Block::station:
        return page == port0 || page == station;
    case Block::port:
        return page == port0 || page == station || page == port;
    case Block::nt_both:
        return page == nt_virtual || page == nt_link || (page == dma_function && is_header(r));
    case Block::nt_virtual:
        return page == nt_virtual;
    case Block::nt_link:
        return page == nt_link;
    case Block::alut:
        return page == alut;
    case Block::dma:
        return page == dma_function;
    }
    return false;
}

constexpr Layout layout = [] {
    Layout l{};
    for (const facts::Reg &r : facts::regs)
        for (uint8_t page = 0; page < page_kinds; page++)
            for (uint32_t i = 0; is_in(r, static_cast<Page>(page)) && i < r.count; i++)
                if (r.offset + i * r.stride < facts::block_size)
                    l.kind[page][(r.offset + i * r.stride) / 4] = kind_of(r.access);
    for (const Page page : {nt_virtual, nt_link, dma_function})
        for (uint32_t at = 0; at < facts::block_size; at += 4)
            if (is_capability(at))
                l.kind[page][at / 4] = Kind::ro;
    return l;
}();

Place nt_place(const Chip &chip, uint32_t offset)
{
    const uint32_t from_top = (facts::bar0_size - 1 - offset) / facts::block_size;
    const unsigned nt = from_top / 2;
    const Page page = from_top % 2 == 0 ? nt_link : nt_virtual;
    if (!facts::nt_port(get(chip, reg::vs0_upstream), nt).enabled)
        return {};
    return {page, nt, offset & page_mask};
}
} // namespace

bool lies_in(const facts::Reg &r, Page page)
{
    return is_in(r, page);
}

Place place_of(const Chip &chip, uint32_t offset)
{
    const uint32_t block = offset / facts::block_size;
    if (offset >= facts::bar0_size || offset % 4 != 0)
        return {};
    if (offset >= nt_base(facts::nt_count - 1, Side::virt))
        return nt_place(chip, offset);
    if (offset >= facts::alut_array0_base)
        return {alut, 0, offset & page_mask};
    unsigned channel = 0;
    if (in_dma_function(chip, offset, &channel))
        return {dma_function, 0, offset & page_mask};
    if (block >= facts::port_count)
        return {};
    if (block % facts::ports_per_station != 0)
        return {port, 0, offset & page_mask};
    return {block == 0 ? port0 : station, 0, offset & page_mask};
}

Kind kind_at(const Place &place)
{
    return place.page == absent ? Kind::missing : layout.kind[place.page][place.at / 4];
}

// Doorbells and scratchpads are one set of registers, seen in both blocks of an NT port; the
// clear registers of a pair are another view of the set registers (FBSD, VCA R; D).
uint32_t canonical(const Place &place, uint32_t offset)
{
    if (place.page != nt_virtual && place.page != nt_link)
        return offset;
    if (place.at < reg::db_virt_set || place.at >= reg::spad[facts::spad_count])
        return offset;
    const uint32_t home = nt_base(place.nt, Side::virt);
    if (place.at >= reg::spad[0])
        return home + place.at;
    switch (place.at) {
    case reg::db_virt_clear:
        return home + reg::db_virt_set;
    case reg::db_virt_mask_clear:
        return home + reg::db_virt_mask_set;
    case reg::db_link_clear:
        return home + reg::db_link_set;
    case reg::db_link_mask_clear:
        return home + reg::db_link_mask_set;
    default:
        return home + place.at;
    }
}

} // namespace plx::twin
