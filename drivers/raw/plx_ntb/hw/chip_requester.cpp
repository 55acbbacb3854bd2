// SPDX-License-Identifier: BSD-3-Clause
// The requester-ID table of the own block: whose requests pass to the peer.
#include "chip.hpp"

#include <cerrno>

namespace plx::hw
{

using facts::LutEntry;

namespace
{

constexpr unsigned first_slot = 2; ///< behind the CPU's two ids

bool same(uint16_t a, uint16_t b)
{
    return LutEntry::of(a).encode() == LutEntry::of(b).encode();
}

} // namespace

Chip::Requester Chip::requester(unsigned slot) const
{
    if (slot < first_slot)
        return {slot == 0 ? uint16_t{0} : own_id_, Entry::own};
    return requesters_[slot - first_slot];
}

LutEntry Chip::lut_entry(unsigned slot) const
{
    const Requester r = requester(slot);
    return r.entry == Entry::none || r.entry == Entry::leaving ? LutEntry() : LutEntry::of(r.id);
}

/// Two entries share a register.
void Chip::write_lut_pair(unsigned slot) const
{
    const unsigned even = slot & ~1u;
    io_.write32(own(facts::reg::req_id_lut(id_.side)[slot / 2]),
                facts::lut_dword(lut_entry(even), lut_entry(even + 1)));
}

// 0:0 (CPU writes), the id of our own reads (E14, E17), those given and added; the rest off,
// whatever a predecessor left.                                                         FBSD R
void Chip::write_own_lut(uint16_t own_id)
{
    own_id_ = own_id;
    for (unsigned slot = 0; slot < facts::lut_entry_count; slot += 2)
        write_lut_pair(slot);
    lut_mark_ = facts::lut_dword(lut_entry(0), lut_entry(1));
}

/// @return its slot; facts::lut_entry_count: it is not there
unsigned Chip::find_requester(uint16_t id) const
{
    unsigned slot = 0;
    while (slot < facts::lut_entry_count &&
           (requester(slot).entry == Entry::none || !same(requester(slot).id, id)))
        slot++;
    return slot;
}

int Chip::requester_add(uint16_t id)
{
    unsigned slot = find_requester(id);
    if (slot < facts::lut_entry_count && requester(slot).entry != Entry::leaving)
        return -EEXIST;
    // One that is leaving keeps its slot.
    for (unsigned i = 0; slot == facts::lut_entry_count && i < requesters_max; i++)
        if (requesters_[i].entry == Entry::none)
            slot = first_slot + i;
    if (slot == facts::lut_entry_count)
        return -ENOSPC;
    Requester &place = requesters_[slot - first_slot];
    const Requester before = place;
    place = {id, Entry::added};
    write_lut_pair(slot);
    const int rc = flush_record();
    if (rc != 0)
        place = before.entry == Entry::none ? Requester{id, Entry::leaving} : before;
    return rc;
}

int Chip::requester_remove(uint16_t id)
{
    const unsigned slot = find_requester(id);
    if (slot == facts::lut_entry_count)
        return -ENOENT;
    if (slot < first_slot || requester(slot).entry == Entry::given)
        return -EPERM;
    Requester &place = requesters_[slot - first_slot];
    place.entry = Entry::leaving;
    write_lut_pair(slot);
    const int rc = flush_record();
    if (rc == 0)
        place = Requester();
    return rc;
}

/// @param leaving_only  those that the table is known not to hold any more; else all that were
///   added, and the table with them
void Chip::forget_requesters(bool leaving_only)
{
    for (unsigned i = 0; i < requesters_max; i++) {
        Requester &place = requesters_[i];
        if (place.entry != Entry::leaving && (leaving_only || place.entry != Entry::added))
            continue;
        place = Requester();
        if (!leaving_only)
            write_lut_pair(first_slot + i);
    }
}

} // namespace plx::hw
