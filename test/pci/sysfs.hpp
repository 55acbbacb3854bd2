// SPDX-License-Identifier: BSD-3-Clause
// A made-up sysfs tree in which EAL's PCI bus finds functions: plain files stand for BARs and
// configuration space, a FIFO for the interrupt of uio_pci_generic.
#ifndef TEST_PCI_SYSFS_HPP
#define TEST_PCI_SYSFS_HPP

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace test
{

/// Flags of a line of the file "resource", as the kernel has them.
inline constexpr uint64_t flag_memory = 0x200, flag_prefetch = 0x2000, flag_64bit = 0x100000;
inline constexpr uint64_t wide = flag_memory | flag_prefetch | flag_64bit;

struct FakeBar {
    uint64_t start = 0;
    uint64_t bytes = 0; ///< 0: absent
    uint64_t flags = 0;
};

/// A PCI function as it comes: a PEX 8749's NT0 virtual endpoint, bound to uio_pci_generic.
struct FakeFunction {
    std::string address = "0000:03:00.0";
    uint16_t vendor = 0x10B5;
    uint16_t device = 0x87B0;
    uint32_t class_code = 0x068000;
    std::string driver = "uio_pci_generic"; ///< empty: none is bound
    std::string bridges; ///< folders of the bridges above, as in "0000:01:00.0/0000:02:08.0"
    FakeBar bars[6] = {{0xF7000000, 256 << 10, flag_memory},     {},
                       {0x3800000000, uint64_t{64} << 20, wide}, {},
                       {0x3804000000, uint64_t{4} << 20, wide},  {}};
    bool wc_files = true; ///< the kernel offers resourceN_wc for prefetchable BARs
    size_t config_bytes = 4096;
    std::map<uint32_t, uint32_t> config;    ///< beside ids, class and BARs
    std::map<uint32_t, uint32_t> registers; ///< in BAR0

    FakeFunction();
    /// Its ids, in configuration space and where BAR0 mirrors it.
    void rename(uint16_t new_device, uint32_t nt_port_id, uint32_t nt_base);
    /// BAR0 shows the BARs in that block too.
    void mirror_bars(uint32_t nt_base);
};

class Sysfs
{
public:
    /// Makes an empty tree and points EAL to it; to be called before EAL starts.
    Sysfs();
    ~Sysfs();
    Sysfs(const Sysfs &) = delete;
    Sysfs &operator=(const Sysfs &) = delete;

    void plug(const FakeFunction &function);
    void unplug(const std::string &address);
    /// The interrupt line of a function is up: EAL learns it, unless it has not looked yet since it
    /// learnt it last. From any thread, while the function is plugged in.
    void interrupt(const std::string &address) const;

    std::string file(const std::string &address, const std::string &name) const;
    uint32_t read32(const std::string &address, const std::string &name, uint64_t offset) const;
    void write32(const std::string &address, const std::string &name, uint64_t offset,
                 uint32_t value) const;
    /// As surprise removal: every access to the BARs is a SIGBUS from now on.
    void vanish(const std::string &address) const;

    const std::string &root() const { return root_; }

private:
    std::string root_;
    std::map<std::string, int> fifos_; ///< kept open, so that a write never meets a closed end
    std::map<std::string, unsigned> numbers_;
    unsigned next_number_ = 70;
};

} // namespace test

#endif
