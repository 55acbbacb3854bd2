// SPDX-License-Identifier: BSD-3-Clause
// Two hosts on one cable, and what a driver does to open the ways between them.
#ifndef PLX_TEST_TWIN_BENCH_PAIR_HPP
#define PLX_TEST_TWIN_BENCH_PAIR_HPP

#include "plx_fields.hpp"
#include "plx_regs.hpp"
#include "twin.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <poll.h>
#include <string>
#include <unistd.h>

namespace plx::test
{

using facts::Side;
namespace reg = facts::reg;
namespace field = facts::field;

inline constexpr uint32_t virt_block = facts::nt_base(0, Side::virt);
inline constexpr uint32_t link_block = facts::nt_base(0, Side::link);
inline constexpr uint64_t mib = uint64_t{1} << 20;
inline constexpr uint16_t write_rid = 0x0000;
inline constexpr uint16_t read_rid = 0x0008;
/// Link addresses as the field's drivers choose them: by BAR number.
constexpr uint64_t link_address(unsigned bar)
{
    return uint64_t{bar} << 61;
}

/// A clock that only a test moves.
struct HandClock {
    std::atomic<uint64_t> ns{1'000'000'000};
    static uint64_t read(void *ctx) { return static_cast<HandClock *>(ctx)->ns.load(); }
    void advance_us(uint64_t us) { ns.fetch_add(us * 1000); }
};

/// Longer than anything takes on a busy machine; no one waits so long for what does come.
inline constexpr int patience_s = 60;

/// True as soon as @p done is, within @p seconds.
template <typename Done>
bool await(Done done, int seconds = patience_s)
{
    for (int i = 0; i < seconds * 1000; i++) {
        if (done())
            return true;
        poll(nullptr, 0, 1);
    }
    return done();
}

inline void write64(twin::Host *host, uint32_t offset, uint64_t value)
{
    twin::csr_write32(host, offset, static_cast<uint32_t>(value));
    twin::csr_write32(host, offset + 4, static_cast<uint32_t>(value >> 32));
}

/// What a driver ends with that must know its writes to have taken effect.
inline void flush(twin::Host *host)
{
    twin::csr_read32(host, virt_block + reg::nt_port_id);
}

inline bool link_is_up(twin::Host *host)
{
    return field::link_width.get(twin::csr_read32(host, virt_block + reg::pcie_link_ctl_status)) !=
           0;
}

/// Lets the peer reach [bus, bus+bytes) through its BAR @p bar, without A-LUT.
inline void open_inbound(twin::Host *host, unsigned bar, uint64_t bus, uint64_t bytes,
                         uint64_t link_offset = 0)
{
    write64(host, link_block + reg::bar_setup(Side::link, bar), ~(bytes - 1) | 0xC);
    write64(host, link_block + reg::pci_bar[bar], link_address(bar) + link_offset);
    write64(host, link_block + reg::bar_xlat(bar), bus);
}
inline void close_inbound(twin::Host *host, unsigned bar)
{
    write64(host, link_block + reg::bar_setup(Side::link, bar), 0xC);
}

/// Everything but the inbound windows: outbound translation, CSRs behind BAR4, tables, commands.
inline void bring_up(twin::Host *host)
{
    twin::csr_write32(host, link_block + reg::bar0_setup_link, facts::bar0_setup_64bit);
    write64(host, link_block + reg::pci_bar[0], link_address(4) | 4);
    for (const unsigned bar : {2u, 4u})
        write64(host, virt_block + reg::bar_xlat(bar), link_address(bar));
    twin::csr_write32(host, link_block + reg::alut_control, 0);
    for (uint32_t i = 0; i < facts::lut_entry_count / 2; i++)
        twin::csr_write32(host, link_block + reg::req_id_lut_link[i],
                          0x00010001 | (2 * i + 1) << 19 | 2 * i << 3);
    twin::csr_write32(host, virt_block + reg::req_id_lut_virt[0], 0x00090001); // 00:00 and 00:01
    for (const uint32_t block : {virt_block, link_block})
        twin::csr_write32(host, block + reg::pci_command_status, 0x6);
}

/// Two hosts of this process.
class MemPair : public testing::Test
{
protected:
    HandClock clock;
    twin::Config config;
    std::string cable = "mem:" + std::to_string(getpid());
    twin::Host *a = nullptr;
    twin::Host *b = nullptr;

    MemPair()
    {
        config.cable = cable.c_str();
        config.bar2_bytes = 512 * mib;
        config.clock = HandClock::read;
        config.clock_ctx = &clock;
    }
    void attach_both()
    {
        twin::Error error{};
        ASSERT_EQ(twin::attach(config, &a, &error), 0) << error.text;
        ASSERT_EQ(twin::attach(config, &b, &error), 0) << error.text;
    }
    void train()
    {
        clock.advance_us(config.switches.train_us);
        ASSERT_TRUE(link_is_up(a));
        ASSERT_TRUE(link_is_up(b));
    }
    /// Trained and programmed but for inbound windows.
    void set_up_both()
    {
        attach_both();
        train();
        bring_up(a);
        bring_up(b);
    }
    /// B's A-LUT for what hits its link BAR2, over all of the BAR.
    void alut_entry(uint32_t entry, uint64_t bus, uint32_t rights)
    {
        write_alut_entry(entry, bus, rights);
        flush(b);
    }
    void write_alut_entry(uint32_t entry, uint64_t bus, uint32_t rights)
    {
        const uint32_t array = facts::alut_array(0, Side::link, 256);
        twin::csr_write32(b, array + facts::alut_entry(reg::alut_upper, entry),
                          static_cast<uint32_t>(bus >> 32));
        twin::csr_write32(b, array + facts::alut_entry(reg::alut_lower, entry),
                          static_cast<uint32_t>(bus));
        twin::csr_write32(b, array + facts::alut_entry(reg::alut_permission, entry), rights);
    }
    void TearDown() override
    {
        twin::detach(a);
        twin::detach(b);
    }
};

inline uint32_t load32(twin::Host *host, unsigned bar, uint64_t offset)
{
    auto *base = static_cast<volatile uint8_t *>(twin::bar(host, bar).base);
    return *reinterpret_cast<volatile uint32_t *>(base + offset);
}
inline void store32(twin::Host *host, unsigned bar, uint64_t offset, uint32_t value)
{
    auto *base = static_cast<volatile uint8_t *>(twin::bar(host, bar).base);
    *reinterpret_cast<volatile uint32_t *>(base + offset) = value;
}
inline uint32_t word_at(const twin::Memory &memory, uint64_t offset)
{
    return *reinterpret_cast<volatile uint32_t *>(static_cast<uint8_t *>(memory.base) + offset);
}

} // namespace plx::test

#endif
