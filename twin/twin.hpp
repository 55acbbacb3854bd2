// SPDX-License-Identifier: BSD-3-Clause
// The software twin of PEX 87xx chips between two hosts, two joined back to back or one that both
// share: what a host's driver sees of it. No DPDK. doc/twin.md says what it shows and what it
// cannot.
#ifndef PLX_TWIN_HPP
#define PLX_TWIN_HPP

#include <cstddef>
#include <cstdint>

namespace plx::twin
{

/// One host's end of a cable: its chip, the windows it looks through, the memory it exposes.
class Host;

/// What becomes of the registers that an earlier process of this end left in its chip, where the
/// other end of the cable still holds them.
/// file: as reset, and then with the registers that Config::state_file holds.
enum class ChipState { keep, reset, random, file };

/// What stands between the two hosts.
enum class Topology {
    back_to_back, ///< two chips, cabled by their NT ports: each host on the virtual side of its own
    /// One chip: one host on its virtual side, the other, whose root port is cabled to the NT port,
    /// on its link side. The chip is powered before either host and stays with whichever is left.
    root_port,
};

/// A monotonic clock in nanoseconds; tests advance their own.
using ClockFn = uint64_t (*)(void *ctx);
/// Starts a thread that runs @p body(arg) until it returns; joined through ThreadJoinFn.
/// The default is a pthread; the driver passes EAL's control threads.
using ThreadStartFn = int (*)(void **thread, const char *name, void *(*body)(void *), void *arg);
using ThreadJoinFn = void (*)(void *thread);

/// What plx-87xx facts leave open: each is a switch, with the default that the evidence favours.
struct Switches {
    bool spads_survive_link_down = true; // Q5
    bool link_up_latches_fe0 = true;     // Q6: FE0 bit 2 on both edges
    bool lut_filters_bar0 = false;       // Q15: CSR traffic from the link passes no LUT
    bool masked_doorbells_count = true;  // 6.4: masked bits count for "was zero"
    bool msi_needs_zero = true;          // E1: MSI only when the doorbells were all zero
    // DMA engines:
    bool dma_flr = true;                 // DevCap of the functions says that FLR is there
    bool dma_flr_revives = false;        // FLR ends a hang (E9: only a reset of the switch does)
    bool dma_timeout_hangs = true;       // E9: a completion that does not come; not with 90 bit 4
    bool dma_errors_hang = false;        // E9: any failed transfer
    bool dma_refused_writes_fail = true; // Q14: a refused write is reported; else silently lost
    bool dma_stale_tail = true;          // E7: 21C stays 0 where a ring follows another unzeroed
    bool dma_rewrite_drops = true;       // ring registers rewritten: what was read ahead is dropped
    bool dma_pause_repeats = false;      // a pause of an engine that is paused is answered again
    bool dma_relaxed_reorders = false;   // E13: data writes pass others where 238 bit 25 allows it
    bool dma_last_is_completed = false;  // Q8: 224 shows the last completed, not fetched
    bool dma_writes_back_all = false;    // Q9: all of the descriptor, not its first word alone
    bool dma_fetches_past_end = false;   // 5.7: reads ahead behind the ring's end before it wraps
    bool dma_port_assign = true;         // Q11: 1FC shares out channels; else all are upstream's
    bool dma_function_by_channel = true; // Q11: function = channel + 1; else counted on each side
    bool dma_link_down_resets = true;    // a lost link resets the functions beyond it
    bool dma_restart_harmless = true;    // Q13: START while running; else it begins at the base
    uint32_t dma_prefetch_unit = 1;      // Q10: 234 counts descriptors, or groups of 4
    uint32_t dma_ring_align = 64;        // Q12: power of two; low bits of 214 are ignored
    uint32_t train_us = 1000;            // link training after both ports are enabled
    bool dead_link_reads_ones = true;    // 4.4: what a link-side host reads then; else zeros
    uint32_t pattern_protect_us = 100;   // E2: test-pattern registers after link down
};

inline constexpr uint32_t no_user = ~uint32_t{0};

struct Config {
    /// Socket path of the cable, or "mem:<name>" for two hosts of one process.
    const char *cable = nullptr;
    /// Of a socket cable: the other end may be of this user too, beside the process's own.
    uint32_t cable_uid = no_user;
    ChipState state = ChipState::keep;
    uint64_t random_seed = 1;                  ///< of ChipState::random
    const char *state_file = nullptr;          ///< of ChipState::file; read by attach() only
    uint64_t bar2_bytes = uint64_t{512} << 20; ///< power of two, 1 MiB to 64 GiB
    uint64_t bar4_bytes = uint64_t{4} << 20;   ///< power of two, 2 MiB to 64 GiB
    /// Entries of the A-LUT as the EEPROM has them shared out (CSR 360): 256; 128 with as many for
    /// the other NT port; 0: the NT port translates by base and offset alone. Not looked at with
    /// ChipState::file.
    uint32_t alut_entries = 256;
    uint16_t cpu_write_rid = 0x0000; ///< requester ID of CPU stores: root complex
    uint16_t cpu_read_rid = 0x0008;  ///< requester ID of CPU loads: root port 00:01.0
    /// Both ends must say the same of these two, and sit on different sides of a shared chip.
    Topology topology = Topology::back_to_back;
    unsigned nt = 0;           ///< NT port that the cable hangs on, 0 or 1
    bool link_side = false;    ///< with Topology::root_port: this host sees the NT link endpoint
    unsigned dma_channels = 4; ///< DMA functions of the chip, 0 to 4; of two, channels 0 and 2
    /// The last so many of them the EEPROM gives to the NT port (register 1FC): those of the host
    /// on the link side. Both ends of a shared chip must say the same.
    unsigned dma_link_channels = 0;
    uint16_t dma_rid = 0x0100; ///< bus and device of this host's DMA functions; functions 1 to 4
    /// How long a register write that moves the peer's view waits for the peer to follow.
    uint32_t remap_wait_us = 100000;
    Switches switches;
    ClockFn clock = nullptr; ///< NULL: CLOCK_MONOTONIC
    void *clock_ctx = nullptr;
    ThreadStartFn thread_start = nullptr; ///< NULL: pthread_create
    ThreadJoinFn thread_join = nullptr;
};

/// What went wrong, in one sentence for the user: what, where, what was expected.
struct Error {
    char text[256];
};

/// Plugs a host into a cable. The first one waits in the background for the other: this
/// returns at once with the link down.
/// @return 0 and *out; -EINVAL bad config, another topology at the other end, or both ends of a
///   socket cable in one process;
///   -EBUSY the cable has two ends already; -EACCES/-ENOENT/... the path cannot be used;
///   -EPROTO the other end speaks another version; -ENOMEM. @p error says which.
int attach(const Config &config, Host **out, Error *error);

/// Pulls the host out: the cable thread ends, windows and memory are unmapped, the socket file is
/// removed if it was ours. The chip stays with the other end, as a card stays powered.
void detach(Host *host);

/// The chip's CSR space (256 KiB) and the configuration space (4 KiB) of the NT function that this
/// host sees: the virtual one, or the link one, which is there as long as the link is up.
/// Side effects run at once in the caller, but what the A-LUT exposes or revokes is followed by the
/// host's next read, or some milliseconds later. Any thread. A read of a missing register is 0.
uint32_t csr_read32(Host *host, uint32_t offset);
void csr_write32(Host *host, uint32_t offset, uint32_t value);
uint32_t config_read32(Host *host, uint32_t offset);
void config_write32(Host *host, uint32_t offset, uint32_t value);

/// A memory BAR of the NT endpoint that this host sees. base is NULL for BARs that do not exist (3,
/// 5: upper halves; BAR0: CSR, see csr_read32). base is plain memory: what is stored there arrives
/// in the peer's memory while the way is open, and is lost while it is not.
struct Bar {
    volatile void *base;
    uint64_t bytes;
    bool is_64bit;
    uint64_t bus; ///< the address at which an engine on this host's bus reaches it; 0: BAR0
};
Bar bar(Host *host, unsigned index);
/// Gives the memory of a window another address, bar().base; its address on the bus stays. What is
/// stored through the old address from now on reaches no peer, and loads there give what was
/// stored.
/// @param bar 2 or 4
/// @param old where it was, until window_forget()
/// @return 0; -EINVAL; -ENOMEM, with nothing changed
int window_move(Host *host, unsigned bar, void **old);
/// No thread uses the old address any more.
void window_forget(Host *host, unsigned bar, void *old);

/// The checked way through a window, for tests of rights and for the peer's CSRs (which lie behind
/// the shared window and cannot be plain memory): every rule of the chip is applied to the access.
/// Reads that do not arrive give all-ones. @return whether it arrived.
bool window_read(Host *host, unsigned bar, uint64_t offset, void *out, size_t bytes,
                 uint16_t requester);
bool window_write(Host *host, unsigned bar, uint64_t offset, const void *in, size_t bytes,
                  uint16_t requester);

/// Exposed memory: what a host lets its peer reach. One sealed memfd each, aligned to its own size
/// in bus addresses (which are the twin's own: virtual addresses of the exposing process).
struct Memory {
    void *base;
    uint64_t bus;
    size_t bytes;
    size_t page_bytes; ///< 2 MiB where there were huge pages, else 4 KiB
};
/// @param bytes power of two, 1 MiB to 1 GiB
/// @param numa_node where its pages go; -1: anywhere
/// @param want_huge try 2 MiB pages first
/// @return 0; -EINVAL; -ENOMEM; -ENOSPC too many blocks (256 a host)
int memory_add(Host *host, size_t bytes, int numa_node, bool want_huge, Memory *out);
/// Revokes it: the peer's view is gone when this returns. @return 0 or -ENOENT
int memory_remove(Host *host, const Memory &memory);

/// The chip's DMA functions that are in this host's hierarchy, one channel each, in the order of
/// their numbers. Without a function of that index, reads give all-ones and writes are lost; beyond
/// the link also while it is down.
/// @param index of the host's own functions, from 0
/// @param offset in the function's BAR0: its own configuration space, the channel registers from
///   0x200 on. The same block is CSR 0x21000 + 0x1000 * dma_channel().
unsigned dma_channels(Host *host);
/// Which of the chip's channels it is, 0 to 3; 4: there is none.
unsigned dma_channel(Host *host, unsigned index);
uint32_t dma_read32(Host *host, unsigned index, uint32_t offset);
void dma_write32(Host *host, unsigned index, uint32_t offset, uint32_t value);
/// The requester ID of the function's transactions.
uint16_t dma_requester(Host *host, unsigned index);

/// The interrupt of a DMA function, as on_interrupt() is that of the NT function: a level while an
/// event of register 23C is pending that is enabled there, with bit 15, or is a descriptor's.
void on_dma_interrupt(Host *host, unsigned index, void (*callback)(void *ctx), void *ctx);

/// Makes local memory known to the engines: they reach @p address as [bus, bus + bytes). Window
/// memory is known to them already, by Memory::bus. Any thread.
/// @return 0; -EINVAL no bytes, above 48 bits, or in part taken by a BAR, by exposed memory or by
/// an
///   earlier call; -ENOSPC too many ranges (65536); -ENOMEM
int dma_map(Host *host, void *address, uint64_t bus, uint64_t bytes);
/// Takes a range back, as it was given. No engine uses it any more when this returns.
/// @return 0 or -ENOENT
int dma_unmap(Host *host, uint64_t bus, uint64_t bytes);

/// Whether a process holds the other end of the cable now, and the cable is plugged in.
bool cable_connected(Host *host);
/// Called from the cable's thread when the other end comes or goes, or the cable is pulled or put
/// back. One callback; NULL removes it, and it does not run any more once this returns. It must not
/// call detach. What happened before is not reported again: see cable_connected().
void on_cable(Host *host, void (*callback)(void *ctx, bool connected), void *ctx);

/// The interrupt of the NT virtual function. Called from the cable's thread: with INTx again and
/// again while doorbells that are not masked, or link errors that are not masked, are pending; with
/// MSI, where its enable bit is set in configuration space, once a message. One callback; NULL
/// removes it, and it does not run any more once this returns. It must not call detach.
void on_interrupt(Host *host, void (*callback)(void *ctx), void *ctx);

/// Faults on demand. They end with the process that asked for them.
enum class Fault {
    link_down,      ///< argument 1: down, 0: may train again
    port_disabled,  ///< argument 1: the port is disabled in register 208; 0: enables it
    cable_pulled,   ///< argument 1: pulled, seen by both ends; 0: put back
    card_gone,      ///< argument 1: surprise removal: register reads give all-ones, writes and the
                    ///< windows lead nowhere, the other end loses its link; 2: the same, but reads
                    ///< give zeros; 0: the card is back, as after power-on
    drop_doorbells, ///< the next <argument> doorbell writes of the peer are lost
    late_doorbells, ///< doorbell writes of the peer arrive <argument> microseconds late
    freeze_remaps,  ///< argument 1: this end does not answer remap requests (a stopped process)
    // Those of all DMA engines of this host; n up to 2^32 - 2, 2^32 - 1 takes the fault back.
    dma_stall,       ///< once, the engine misses a valid descriptor: the one after n more (E8)
    dma_hang,        ///< it hangs in the descriptor after n more, until the chip is reset (E9)
    dma_read_error,  ///< once, the descriptor after n more fails at its source
    dma_write_error, ///< once, the descriptor after n more fails at its destination
    dma_link_loss,   ///< once, the link goes down after n bytes through windows; n at least 1
    dma_late,        ///< write-backs arrive after n register reads of their channel; 0: at once
    dma_pace,        ///< engines move n bytes each time a register of theirs is accessed; 0: all
    dma_requester, ///< transactions carry the requester ID n, at most 65535, as a foreign engine's
                   ///< would; 2^32 - 1: their own again
};
/// @return 0; -EINVAL an argument that the fault does not have; -ENOTSUP no such fault
int inject(Host *host, Fault fault, uint32_t argument);

} // namespace plx::twin

#endif
