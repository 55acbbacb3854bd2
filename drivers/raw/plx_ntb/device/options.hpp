// SPDX-License-Identifier: BSD-3-Clause
// What a user can set: devargs at probe, struct rte_pmd_plx_ntb_config at configure. Both end in
// one bounded Geometry.
#ifndef PLX_NTB_DEVICE_OPTIONS_HPP
#define PLX_NTB_DEVICE_OPTIONS_HPP

#include <cstddef>
#include <cstdint>

#include "device/footprint.hpp"
#include "dma/copy_choice.hpp"
#include "hw/chip.hpp"
#include "hw/facts/plx_regs.hpp"
#include "queue/queue.hpp"
#include "queue/wire.hpp"
#include "rte_pmd_plx_ntb.h"
#include "window/choice.hpp"

struct rte_devargs;

namespace plx::pmd
{

/// Longest message that travels in the ring in any case, where the user gives no `inline`
/// (doc/decisions/040-inline-bound-by-trial.md).
inline constexpr uint32_t inline_default = 256;

/// Sizes of a device: what it exposes, and its rings.
struct Geometry {
    uint32_t queues = 1;
    uint32_t ring_lines = 0; ///< 0: chosen by the machine
    SizedBy ring_by = SizedBy::given;
    uint32_t buffer_ring_lines =
        32;               ///< lines of the ring in which the peer names its receive buffers
    uint32_t buffers = 0; ///< 0: chosen by the machine
    SizedBy buffers_by = SizedBy::given;
    uint32_t buf_bytes = 2048;
    uint32_t queue_buffers =
        0; ///< kept available to the peer per queue pair, multiple of 14; 0: by buffers
    uint32_t inline_max = 0; ///< 0: the default
    /// Longest message that is inline where that is cheaper; as inline_max where that was given.
    uint32_t inline_most = 0;
    uint32_t max_message = 0; ///< 0: what queue_buffers hold
    uint32_t workers = 0;     ///< of queues, the last ones: they carry channels
};

enum class CacheHintChoice { automatic, none, clwb, clflushopt, cldemote };
enum class StoresChoice { automatic, plain, non_temporal };
enum class MemoryPolicy { automatic, plain, write_combining };
enum class TwinState { keep, reset, random, file };
enum class PeerCsr { open, closed };
/// Whether received long messages are delivered in place, or copied first.
enum class RxMode { direct, stable };

struct Options {
    char cable[108] = "";
    uint32_t cable_uid = UINT32_MAX; ///< a user beside our own that the other end may be of
    TwinState state = TwinState::keep;
    uint32_t state_seed = 1;   ///< of TwinState::random
    char state_file[256] = ""; ///< of TwinState::file
    bool link_side = false;    ///< of the twin: on the link side of a chip that both hosts are on
    uint32_t nt = 0;           ///< of the twin: NT port
    uint32_t dma_link = 0;     ///< of the twin: DMA channels that its EEPROM gives to the link side
    hw::Topology topology = hw::Topology::automatic; ///< on a twin: back to back
    Geometry geometry;
    uint32_t heartbeat_ms = 50; ///< the peer is silent after so long without a heartbeat
    uint32_t lost_ms = 1000;
    uint32_t linger_ms = 2000; ///< an orderly end waits so long for confirmation, or for a receiver
    uint32_t recheck_us =
        1000;                ///< interval of re-checks of a sleep that no doorbell is known to end
    uint32_t spin_us = 20;   ///< how long rx_wait() polls before it sleeps
    uint32_t interrupts = 1; ///< 0: doorbells do not interrupt
    uint32_t service = 0;    ///< 1: a service lcore re-checks sleeping receivers
    uint32_t msi = 0;        ///< 1: the twin's chip sends MSI, not INTx
    int node = -1;           ///< -1: the device's own, or the starting thread's
    CacheHintChoice cache_hint = CacheHintChoice::automatic;
    StoresChoice stores = StoresChoice::automatic; ///< of long messages
    MemoryPolicy memory = MemoryPolicy::automatic;
    WindowChoice window;
    uint32_t alut = facts::alut_entries_one_nt; ///< entries of the twin's A-LUT
    /// Whether the peer may reach our registers while it is connected.
    PeerCsr peer_csr = PeerCsr::open;
    RxMode rx = RxMode::direct;
    CopyRequest copy;
    uint32_t dma = facts::dma_function_count; ///< DMA channels for queue pairs, at most
    uint32_t dmadevs = 0;                     ///< DMA channels that are made dmadevs
};

/// The devargs that both probes accept, as dpdk-pmdinfo.py shows them.
#define PLX_COMMON_PARAMS                                                                          \
    "queues=<1..64> ring=<lines> buffers=<n> buf=<bytes> queue_buffers=<n> inline=<bytes> "        \
    "max_message=<bytes> heartbeat_ms=<n> lost_ms=<n> linger_ms=<n> recheck_us=<n> spin_us=<n> "   \
    "intr=0|1 service=0|1 numa=<node> topo=auto|b2b|rp peer_csr=open|closed segment=<KiB> "        \
    "split=<0..7> "                                                                                \
    "rx=direct|stable "                                                                            \
    "cache_hint=auto|none|clwb|clflushopt|cldemote stores=auto|plain|non_temporal "                \
    "mem=auto|plain|wc dma=<0..4> dmadev=<0..4> "                                                  \
    "copy=auto|cpu|dma dma_min=<bytes> copy_curve=<file>|<bytes>:<cpu_ns>:<dma_ns>[/...]"
#define PLX_TWIN_PARAMS                                                                            \
    "cable=<socket path>|mem:<name> cable_uid=<uid> state=keep|reset|random[:<seed>]|<file> "      \
    "msi=0|1 "                                                                                     \
    "alut=0|128|256 side=virtual|link nt=0|1 dma_link=<0..4> "

/// Reads devargs; each bad key or value is logged with what was expected.
/// @param twin whether the twin's devargs are known (and cable is needed)
/// @return 0 or -EINVAL with *options untouched
int parse_options(const char *device, const char *args, bool twin, Options *options);

/// Applies a user's configuration to the devargs, and chooses what neither gives. Every bound is
/// checked; violations are logged.
/// @return 0, -EINVAL or -E2BIG with *out untouched
int apply_config(const char *device, const Geometry &base, const rte_pmd_plx_ntb_config &given,
                 const Machine &machine, Geometry *out);

/// Checks a geometry as a whole. @return 0 or -EINVAL, logged
int check_geometry(const char *device, const Geometry &geometry);

/// Layout of the own block.
struct BlockPlan {
    uint32_t buf_begin; ///< lines
    uint32_t buf_end;   ///< lines
    uint32_t element_bytes;
    uint64_t block_bytes; ///< power of two
};
BlockPlan plan_block(const Geometry &geometry);
/// Memory of one receive buffer of @p buf_bytes.
uint32_t element_bytes(uint32_t buf_bytes);

} // namespace plx::pmd

#endif
