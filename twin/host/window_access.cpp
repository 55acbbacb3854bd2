// SPDX-License-Identifier: BSD-3-Clause
// Accesses through a host's windows by the checked way: twin::window_read() and window_write().
#include "chip/doorbell_faults.hpp"
#include "chip/interrupt.hpp"
#include "chip/link.hpp"
#include "chip/registers.hpp"
#include "host/follow.hpp"
#include "host/host.hpp"
#include "host/interrupt.hpp"
#include "plx_fields.hpp"
#include "twin.hpp"

#include <algorithm>
#include <cstring>

namespace plx::twin
{

namespace
{
using facts::Side;
namespace reg = facts::reg;
namespace field = facts::field;

bool link_up(const Host &host)
{
    return link_trained(*host.chip, beyond_link(host), now_ns(host));
}

struct Access {
    uint8_t *data;         ///< read into
    const uint8_t *source; ///< NULL for a read
    uint16_t proxy;
    bool is_write() const { return source != nullptr; }
};

void set_bits(Chip &chip, uint32_t offset, uint32_t bits)
{
    chip.csr[offset / 4].fetch_or(bits);
}

// Not accepted: unsupported request, noted where the access was turned away (6.3, I).
void note_refusal(Host &host, const Admission &admission)
{
    if (!admission.near) {
        set_bits(*host.chip, nt_block(*host.chip, host.side) + reg::aer_uncorr_status,
                 field::unsupported_request.mask());
        if (host.side == Side::link)
            latch_link_errors(*host.chip, field::err_uncorrectable.mask());
    } else if (!admission.far && host.peer_chip != nullptr) {
        set_bits(*host.peer_chip, nt_block(*host.peer_chip, Side::link) + reg::aer_uncorr_status,
                 field::unsupported_request.mask());
        latch_link_errors(*host.peer_chip, field::err_uncorrectable.mask());
    }
}

bool access_csr(Host &host, uint64_t at, const Access &access, size_t bytes)
{
    if (at % 4 != 0 || bytes % 4 != 0)
        return false;
    bool moved = false;
    for (size_t done = 0; done < bytes; done += 4) {
        const uint32_t offset = static_cast<uint32_t>(at + done);
        uint32_t value = 0;
        if (!access.is_write()) {
            value = reg_read(*host.peer_chip, offset, access.proxy, link_up(host));
            memcpy(access.data + done, &value, sizeof(value));
            continue;
        }
        memcpy(&value, access.source + done, sizeof(value));
        if (!doorbell_faulty(*host.peer_chip, offset, value, now_ns(host)))
            moved |= reg_write(*host.peer_chip, offset, value, now_ns(host));
    }
    if (moved)
        settle(host);
    return true;
}

bool access_memory(Host &host, const Step &step, const Access &access, size_t bytes)
{
    uint8_t *const memory = host.remote_map[step.region];
    if (memory == nullptr || (step.rights & (access.is_write() ? right_write : right_read)) == 0)
        return false;
    if (access.is_write())
        memcpy(memory + step.at, access.source, bytes);
    else
        memcpy(access.data, memory + step.at, bytes);
    return true;
}

bool access_step(Host &host, const Step &step, const Admission &admission, const Access &access,
                 size_t bytes)
{
    const bool csr = step.target == Target::csr;
    const bool admitted =
        admission.near && (admission.far || (csr && !host.config.switches.lut_filters_bar0));
    if (!admitted) {
        if (step.target != Target::nothing)
            note_refusal(host, admission);
        return false;
    }
    if (csr)
        return access_csr(host, step.at, access, bytes);
    return step.target == Target::memory && access_memory(host, step, access, bytes);
}

bool window_access(Host &host, unsigned bar_index, uint64_t offset, void *out, const void *in,
                   size_t bytes, uint16_t requester)
{
    const Bar window = bar(&host, bar_index);
    if (out != nullptr)
        memset(out, 0xFF, bytes);
    if (window.base == nullptr || offset > window.bytes || bytes > window.bytes - offset)
        return false;
    Locked locked(host);
    update_link(host);
    bool arrived = true;
    for (size_t done = 0; done < bytes;) {
        // Anew for each piece: one may be a register that moves the rest.
        const Way way = way_out(host);
        const Admission admission = admit(way, requester);
        const Step s = step(way, bar_index, window.bytes, offset + done);
        const size_t piece = static_cast<size_t>(std::min<uint64_t>(s.bytes, bytes - done));
        const Access access{out == nullptr ? nullptr : static_cast<uint8_t *>(out) + done,
                            in == nullptr ? nullptr : static_cast<const uint8_t *>(in) + done,
                            admission.proxy};
        arrived &= access_step(host, s, admission, access, piece);
        done += piece;
    }
    notify_peer_interrupt(host);
    return arrived;
}
} // namespace

bool window_read(Host *host, unsigned bar, uint64_t offset, void *out, size_t bytes,
                 uint16_t requester)
{
    return window_access(*host, bar, offset, out, nullptr, bytes, requester);
}

bool window_write(Host *host, unsigned bar, uint64_t offset, const void *in, size_t bytes,
                  uint16_t requester)
{
    return window_access(*host, bar, offset, nullptr, in, bytes, requester);
}

} // namespace plx::twin
