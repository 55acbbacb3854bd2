// SPDX-License-Identifier: BSD-3-Clause
// One chip between two hosts: A on its virtual side, B on its link side.
#ifndef PLX_TEST_TWIN_ROOT_PORT_PAIR_HPP
#define PLX_TEST_TWIN_ROOT_PORT_PAIR_HPP

#include "bench_pair.hpp"

namespace plx::test
{

class RootPortPair : public testing::Test
{
protected:
    HandClock clock;
    std::string cable = "mem:rp-" + std::to_string(getpid());
    twin::Config on_virtual;
    twin::Config on_link;
    twin::Host *a = nullptr;
    twin::Host *b = nullptr;

    RootPortPair()
    {
        on_virtual.cable = cable.c_str();
        on_virtual.topology = twin::Topology::root_port;
        on_virtual.bar2_bytes = 8 * mib;
        on_virtual.clock = HandClock::read;
        on_virtual.clock_ctx = &clock;
        on_link = on_virtual;
        on_link.link_side = true;
        on_link.bar2_bytes = 4 * mib;
        on_link.cpu_read_rid = 0x0010;
    }
    void attach_a()
    {
        twin::Error error{};
        ASSERT_EQ(twin::attach(on_virtual, &a, &error), 0) << error.text;
    }
    void attach_b()
    {
        twin::Error error{};
        ASSERT_EQ(twin::attach(on_link, &b, &error), 0) << error.text;
    }
    void attach_both()
    {
        attach_a();
        attach_b();
    }
    void detach(twin::Host *&host)
    {
        twin::detach(host);
        host = nullptr;
    }
    unsigned nt() const { return on_virtual.nt; }
    uint32_t virt(uint32_t reg) const { return facts::nt_base(nt(), Side::virt) + reg; }
    uint32_t link(uint32_t reg) const { return facts::nt_base(nt(), Side::link) + reg; }

    void enable(twin::Host *host, Side side)
    {
        const uint32_t block = facts::nt_base(nt(), side);
        twin::csr_write32(host, block + reg::req_id_lut(side)[0],
                          side == Side::virt ? 0x00090001 : 0x00110001); // CPU: stores and loads
        twin::config_write32(host, reg::pci_command_status, 0x6);
    }
    void enable_both()
    {
        enable(a, Side::virt);
        enable(b, Side::link);
    }
    /// Lets B's BAR2 show memory of A.
    void show_a(const twin::Memory &exposed) { write64(a, link(reg::bar_xlat(2)), exposed.bus); }
    /// Lets A's BAR2 show memory of B.
    void show_b(const twin::Memory &exposed) { write64(b, virt(reg::bar_xlat(2)), exposed.bus); }
    twin::Memory expose(twin::Host *host, uint64_t bytes)
    {
        twin::Memory exposed{};
        EXPECT_EQ(twin::memory_add(host, bytes, -1, false, &exposed), 0);
        return exposed;
    }
    bool up(twin::Host *host)
    {
        const uint32_t status = twin::config_read32(host, reg::pcie_link_ctl_status);
        return status != ~0u && field::link_width.get(status) != 0;
    }
    void set_port(bool disabled)
    {
        twin::csr_write32(a, facts::station_base(1) + reg::port_control, disabled ? 1u << 1 : 0);
    }
    void TearDown() override
    {
        twin::detach(a);
        twin::detach(b);
    }
};

} // namespace plx::test

#endif
