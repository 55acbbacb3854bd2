// SPDX-License-Identifier: BSD-3-Clause
// The operations of a PEX 87xx NT port, in terms of the chip, over the register access of
// reg_io.hpp. No DPDK, no heap.
//
// Either two chips are connected back to back: each host programs both blocks of its own chip from
// the virtual side, and the link bus between them is divided by a plan that both know. Or two hosts
// share one chip, one on each side, the link side behind a root port: each programs its own side,
// and BARs remain as the two systems enumerated them. In both cases requests of the peer hit the
// BARs of the block opposite to ours ("far" below).
//
// The intended state of the chip is kept in a record, and program_all() writes all of it to the
// chip, whatever state the chip is in.
//
// Threads: one at a time per Chip, except where a function says otherwise.
#ifndef PLX_NTB_HW_CHIP_HPP
#define PLX_NTB_HW_CHIP_HPP

#include <cstdint>

#include "facts/plx_fields.hpp"
#include "identify.hpp"
#include "reg_io.hpp"

namespace plx::hw
{

/// A piece of memory to be exposed through a window.
struct Piece {
    uint64_t address; ///< bus address
    uint64_t bytes;
};

/// Requirements of a window on the memory that it exposes.
struct WindowRules {
    uint64_t bytes_max = 0;
    uint64_t bytes_min = 0;
    /// 0: one piece, a power of two in size and aligned to it. 128 or 256: any pieces whose
    /// addresses and sizes are multiples of segment(); they appear one after another.
    uint32_t entries = 0;

    /// The size of the BAR for @p bytes in all.
    uint64_t bar_bytes(uint64_t bytes) const;
    /// Alignment of addresses and sizes, for @p bytes in all.
    uint64_t segment(uint64_t bytes) const;
    /// The largest x such that the window can be used as 2^x windows of equal size, each of whole
    /// segments: at most 7 (FBSD: R), 0 without an A-LUT.
    unsigned split_max() const;
};

/// The topology.
enum class Topology {
    /// On the link side: root_port. On the virtual side as SDK samples detect it: root_port where
    /// the link side has been enumerated. A guess while the other host has not booted.
    automatic,
    back_to_back,
    root_port,
};

struct LinkStatus {
    bool up = false;
    uint8_t speed = 0; ///< PCIe generation; 0 when down
    uint8_t width = 0; ///< lanes; 0 when down
};

struct ChipConfig {
    Topology topology = Topology::automatic;
    /// Sizes of the NT endpoint's BARs as the system assigned them, bytes. BAR2/3 is the data
    /// window, BAR4/5 the shared one; both 64-bit. Back to back, both chips must have the same; in
    /// root-port topology the peer's windows have the sizes that the far block says.
    uint64_t bar2_bytes = 0; ///< power of two, at least 1 MiB
    uint64_t bar4_bytes = 0; ///< power of two, at least 2 MiB; unused in root-port topology
    /// Requesters besides the CPU whose requests pass (bus<<8 | device<<3 | function): the chip's
    /// DMA engines. Read by open() only; others are added by requester_add().
    const uint16_t *requesters = nullptr;
    unsigned requester_count = 0; ///< at most 30
    /// E3: ask the chip to hold its link side over a link loss.
    bool hold_link_side = true;
};

/// What the peer may do through an A-LUT entry.
inline constexpr uint32_t rights_none = 0;
inline constexpr uint32_t rights_write = facts::field::alut_write.mask();
inline constexpr uint32_t rights_read = facts::field::alut_read.mask();
inline constexpr uint32_t rights_all = facts::alut_rights_all;

class Chip
{
public:
    static constexpr unsigned window_count = 2;
    static constexpr unsigned data_window = 0;   ///< BAR2/3
    static constexpr unsigned shared_window = 1; ///< back to back, second half of BAR4/5; else all
    static constexpr unsigned requesters_max = facts::lut_entry_count - 2;

    /// Identifies the chip and checks the plan against it; writes nothing.
    /// @return 0; -ENODEV, -ENOTSUP as identify(), or the link side back to back; -EINVAL the
    ///   configuration
    int open(const RegIo &io, const ChipConfig &config, Refusal *why);
    const Identity &identity() const { return id_; }
    /// Whether both hosts are on this chip; known once open() has been.
    bool shared() const { return shared_; }

    /// Initializes the chip, whatever state it is in: closes every window, masks and clears
    /// doorbells and link errors, clears our scratchpads, then program_all().
    /// @return 0 or -ENODEV
    int start();

    /// Puts the whole record into the chip: requester-ID tables, translations, windows, bus
    /// mastering; back to back those of both sides, and the link BARs. Values that are there
    /// already are written again, which no traffic notices. To be run after every link event (E3).
    /// Source: order of FBSD (R).
    /// @return 0; -ENODEV the chip does not answer any more
    int program_all();

    /// The reverse of start(): link errors and doorbells masked, windows closed, port disabled
    /// unless
    /// @p keep_link, bus mastering off. May be called twice, and does nothing to a chip that open()
    /// refused. @return 0 or -ENODEV
    int shut_down(bool keep_link);

    // ---- windows: memory that the peer reaches

    WindowRules window_rules(unsigned window) const;
    /// Exposes @p pieces through @p window, one after another, from its start. Closes it first; has
    /// taken effect when this returns.
    /// One naturally aligned power of two goes through base and offset, anything else through the
    /// A-LUT, which alone can also give less than rights_all.
    /// @param count 0, or no bytes in all: as window_clear() (E16)
    /// @return 0; -EINVAL, @p why says what was expected, and the window is as it was;
    ///   -ENODEV (the record holds: program_all() makes up for it)
    int window_set(unsigned window, const Piece *pieces, unsigned count, uint32_t rights,
                   Refusal *why);
    /// Revokes the peer's access. Has taken effect when this returns 0: earlier writes of the peer
    /// have arrived or never will.
    /// @return 0; -EINVAL no such window; -ENODEV
    int window_clear(unsigned window);
    /// Fixes the size of the data window's BAR, so that A-LUT segments keep theirs and
    /// segments_set() can use the room after the exposed block. window_rules() respects it. For a
    /// closed window.
    /// @param bytes power of two, 1 MiB (the default: as large as what is exposed) to BAR2
    /// In root-port topology segments always keep their size, and there is nothing to do.
    /// @return 0; -ENOTSUP there is no A-LUT; -EBUSY the window is open; -EINVAL
    int window_fix(uint64_t bytes, Refusal *why);

    // ---- segments of the data window, while window_set() has opened it through the A-LUT

    /// Bytes of a segment; 0 while the window is closed or uses base and offset.
    uint64_t segment_bytes() const;
    /// Exposes @p pieces, one after another, from segment @p first on, in place of what was there;
    /// all other segments remain as they are. The peer sees the old, nothing, or the new memory.
    /// @param rights at least one
    /// @return 0; -EINVAL, @p why says what was expected, and nothing was touched;
    ///   -ENODEV: nothing is in the record; whether the peer got access is not known
    int segments_set(unsigned first, const Piece *pieces, unsigned count, uint32_t rights,
                     Refusal *why);
    /// Revokes the peer's access to @p count segments. Has taken effect when this returns 0, as for
    /// window_clear(). @return 0; -EINVAL no such segments; -ENODEV (the
    /// record holds: program_all() makes up for it)
    int segments_clear(unsigned first, unsigned count);

    // ---- requesters: whose requests pass to the peer

    /// Why a requester is in the own block's table.
    enum class Entry : uint8_t {
        none,
        own,     ///< the CPU's, always there
        given,   ///< to open()
        added,   ///< by requester_add()
        leaving, ///< removed, not known to have taken effect
    };
    struct Requester {
        uint16_t id = 0; ///< bus and device; the function takes no part (E17)
        Entry entry = Entry::none;
    };
    /// Entry @p slot of the table, below facts::lut_entry_count. A request that passes has the slot
    /// as its device number on the other side.
    Requester requester(unsigned slot) const;
    /// Adds a requester; other entries keep their slots. program_all() keeps it.
    /// @return 0; -EEXIST its bus and device are there; -ENOSPC the table is full; -ENODEV: it is
    ///   not in the record
    int requester_add(uint16_t id);
    /// Removes it. @return 0: has taken effect; -ENOENT; -EPERM it was not added;
    ///   -ENODEV: call again; program_all() removes it too
    int requester_remove(uint16_t id);

    /// Opens or closes our registers to the peer (E25). Turning link BAR0 off by its
    /// set-up register is inferred from its encoding, not verified on hardware.
    /// @return 0; -ENODEV; -ENOTSUP a shared chip: both hosts have its registers behind BAR0
    int set_peer_csr(bool open);

    /// How far into our own BAR2 or BAR4 the peer's window begins.
    uint64_t outbound_offset(unsigned window) const;

    // ---- doorbells, 16 per direction. Any thread: the registers set and clear bits.

    /// Raises @p bits at the peer. One posted write: back to back to the peer's registers, behind
    /// @p peer, and the peer is taken to use the NT port of our number; else to our own.
    void ring(const RegIo &peer, uint16_t bits) const;
    /// Doorbells that the peer has raised. All ones also means a removed chip.
    uint16_t doorbells() const;
    void doorbells_clear(uint16_t bits) const;
    void doorbells_mask(uint16_t bits) const;
    void doorbells_unmask(uint16_t bits) const;

    // ---- scratchpads: 8, and 4 test-pattern registers if start() finds them; half of
    // each in root-port topology, the lower half the virtual side's (FBSD: R)

    unsigned spad_count() const { return spad_count_; }
    /// @return 0; -EINVAL no such scratchpad; -ENODEV
    int spad_read(unsigned index, uint32_t *value) const;
    /// @return 0; -EINVAL; -EAGAIN a test-pattern register that refused writes for 1 ms (E2)
    int spad_write(unsigned index, uint32_t value) const;
    /// The peer's, write only. Back to back across the bridge, through @p peer.
    int peer_spad_write(const RegIo &peer, unsigned index, uint32_t value) const;

    // ---- link. Only the virtual side controls it (E28).

    /// On the link side, where the link is on as long as the chip answers, nothing is written.
    /// @return 0 or -ENODEV
    int link_enable();
    /// Reads the own block: the virtual one reports the NT link (FBSD, KAO: R).
    /// @return 0; -ENODEV, which on the link side may be a link that is down
    int link_status(LinkStatus *out) const;
    /// Link errors since the last call, as facts::field::err_*; clears them. Called before
    /// program_all() after a link change, so that the next change is detected again. Their
    /// interrupts remain masked. The link side has no such register: there a change is detected by
    /// our requester-ID table, which it resets (E3); if the chip held its link side, only the
    /// virtual side detects the change. @return 0 or -ENODEV
    int link_errors_take(uint32_t *errors) const;
    /// Whether a call changed the record and did not find the chip answering: registers may hold
    /// what the record does not, until program_all() or start() succeeds.
    bool behind_record() const { return behind_record_; }

private:
    struct Window {
        uint64_t bytes = 0;   ///< 0: closed
        uint64_t address = 0; ///< base and offset only
        bool alut = false;
    };
    struct AlutEntry {
        uint64_t address = 0;
        uint32_t rights = rights_none;
    };

    enum class Whose { own, peer };

    bool on_virtual_side() const { return id_.side == facts::Side::virt; }
    uint32_t own(uint32_t reg) const { return facts::nt_base(id_.nt, id_.side) + reg; }
    /// The block whose BARs the peer's accesses hit.
    uint32_t far(uint32_t reg) const { return facts::nt_base(id_.nt, other(id_.side)) + reg; }
    uint32_t spad_csr(Whose whose, unsigned index) const;
    unsigned plain_spads() const;
    const RegIo &peer_io(const RegIo &peer) const { return shared_ ? io_ : peer; }

    int read_far_bars(Refusal *why);

    int flush() const;
    /// flush(), of what makes registers follow the record.
    int flush_record();
    int write_pattern(uint32_t csr, uint32_t value) const;
    bool has_pattern() const;
    void clear_spads();
    void quiet() const;
    int port_set_disabled(bool disabled) const;
    void write_far_pair(uint32_t reg, uint64_t value) const;
    facts::LutEntry lut_entry(unsigned slot) const;
    void write_lut_pair(unsigned slot) const;
    void write_own_lut(uint16_t own_id);
    unsigned find_requester(uint16_t id) const;
    void forget_requesters(bool leaving_only);
    void write_link_lut() const;
    void write_hold() const;
    void write_peer_csr() const;
    void write_outbound() const;
    void write_commands() const;
    void open_window(unsigned window) const;
    void close_window(unsigned window) const;
    void write_setup(unsigned window, uint64_t bytes) const;
    uint32_t alut_csr(facts::RegArray part, uint32_t entry) const;
    void write_alut(unsigned first, unsigned count) const;
    void write_alut_rights(unsigned first, unsigned count) const;
    void record_alut(unsigned first, const Piece *pieces, unsigned count, uint64_t segment,
                     uint32_t rights);
    void forget_alut(unsigned first, unsigned count);

    RegIo io_;
    Identity id_;
    bool shared_ = false;
    /// BARs that the peer's requests hit: set up by us back to back, else by the other system.
    uint64_t bar_bytes_[window_count] = {};
    bool behind_record_ = false;
    uint32_t lut_mark_ = 0; ///< first dword of the own table, as written last
    uint64_t data_bytes_min_ = facts::window_size_min; ///< see window_fix()
    uint16_t own_id_ = 0;                              ///< of the CPU's reads
    Requester requesters_[requesters_max];
    unsigned spad_count_ = facts::spad_count;
    bool hold_link_side_ = true;
    bool peer_csr_open_ = true;
    Window windows_[window_count];
    AlutEntry alut_[facts::alut_entries_one_nt];
};

} // namespace plx::hw

#endif
