// SPDX-License-Identifier: BSD-3-Clause
#include "host/config.hpp"

#include "host/error.hpp"
#include "plx_regs.hpp"
#include "twin.hpp"

#include <cerrno>
#include <cstring>

namespace plx::twin
{

namespace
{
constexpr uint64_t bar_bytes_max = uint64_t{64} << 30;

bool is_size(uint64_t bytes, uint64_t min)
{
    return bytes >= min && bytes <= bar_bytes_max && (bytes & (bytes - 1)) == 0;
}
} // namespace

int config_check(const Config &config, Error *error)
{
    if (config.cable == nullptr || config.cable[0] == '\0')
        return fail(error, -EINVAL, "no cable: a socket path or mem:<name> is needed");
    if (strlen(config.cable) > cable_name_max)
        return fail(error, -ENAMETOOLONG, "the cable's name is too long");
    if (!is_size(config.bar2_bytes, uint64_t{1} << 20))
        return fail(error, -EINVAL,
                    "BAR2 of %llu bytes: a power of two from 1 MiB to 64 GiB is needed",
                    static_cast<unsigned long long>(config.bar2_bytes));
    if (!is_size(config.bar4_bytes, uint64_t{2} << 20))
        return fail(error, -EINVAL,
                    "BAR4 of %llu bytes: a power of two from 2 MiB to 64 GiB is needed",
                    static_cast<unsigned long long>(config.bar4_bytes));
    if (config.dma_channels > facts::dma_function_count)
        return fail(error, -EINVAL, "%u DMA channels: 0 to %u are needed", config.dma_channels,
                    facts::dma_function_count);
    if (config.alut_entries != 0 && config.alut_entries != facts::alut_entries_two_nt &&
        config.alut_entries != facts::alut_entries_one_nt)
        return fail(error, -EINVAL, "an A-LUT of %u entries: 0, 128 or 256 are possible",
                    config.alut_entries);
    if (config.dma_link_channels > config.dma_channels)
        return fail(error, -EINVAL, "%u DMA channels of the NT port: the chip has %u",
                    config.dma_link_channels, config.dma_channels);
    if (config.state == ChipState::file && config.state_file == nullptr)
        return fail(error, -EINVAL, "no file of registers: a name is needed");
    if (config.nt >= facts::nt_count)
        return fail(error, -EINVAL, "NT port %u: 0 or 1 is needed", config.nt);
    const uint32_t align = config.switches.dma_ring_align;
    if (align == 0 || (align & (align - 1)) != 0 || config.switches.dma_prefetch_unit == 0)
        return fail(error, -EINVAL, "DMA rings aligned to %u, prefetch in units of %u", align,
                    config.switches.dma_prefetch_unit);
    if (config.link_side && config.topology != Topology::root_port)
        return fail(error, -EINVAL, "a link side to sit on is in root-port topology alone");
    if (config.link_side && config.state != ChipState::keep)
        return fail(error, -EINVAL, "a shared chip is restarted from its virtual side alone");
    if ((config.thread_start == nullptr) != (config.thread_join == nullptr))
        return fail(error, -EINVAL, "thread_start and thread_join come together");
    return 0;
}

} // namespace plx::twin
