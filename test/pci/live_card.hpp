// SPDX-License-Identifier: BSD-3-Clause
// A PCI function behind EAL's bus that answers as the software twin does. The driver probes, maps
// and accesses it as it would a card; in its place stands the twin:
//   BAR0 and BAR4   trapped accesses (trap.hpp), answered by the twin's registers
//   BAR2            the twin's window, put in the place of the mapped file
//   configuration   a file, kept like the twin's
//   interrupt       the FIFO that stands for uio_pci_generic, written by the twin
//   window memory   the twin's, as its bus addresses are its own
//   DMA functions   trapped accesses of their BAR0; the twin's engines know EAL's memory
// The driver's calls of EAL that this takes are wrapped by the linker (--wrap); the driver itself
// is what is installed.
#ifndef TEST_PCI_LIVE_CARD_HPP
#define TEST_PCI_LIVE_CARD_HPP

#include "sysfs.hpp"

#include <array>
#include <string>

#include "bus/eal_memory.hpp"
#include <twin.hpp>

namespace test
{

class LiveCard
{
public:
    static constexpr unsigned engine_count = 2;

    /// Plugs a card into @p cable (mem:<name>) and into the sysfs tree, its upstream port being
    /// device 0 of @p bus. @p switches: what its chip does where the chip is unknown
    LiveCard(Sysfs &sysfs, uint8_t bus, const std::string &cable,
             const plx::twin::Switches &switches = {});
    ~LiveCard();
    LiveCard(const LiveCard &) = delete;
    LiveCard &operator=(const LiveCard &) = delete;

    const std::string &address() const { return nt_.address; }
    /// Of its DMA functions, which are probed before the NT endpoint that is to use them.
    const std::string &engine_address(unsigned channel) const
    {
        return engines_[channel].function.address;
    }
    plx::twin::Host *host() { return host_; }
    bool mapped() const { return window_ != nullptr; }

private:
    friend struct CardAccess;

    struct Engine {
        LiveCard *card = nullptr;
        unsigned channel = 0;
        FakeFunction function;
    };

    void attach(uint8_t bus, const std::string &cable, const plx::twin::Switches &switches);
    void plug_endpoint();
    void plug_engines(uint8_t bus);
    void show_memory();

    Sysfs &sysfs_;
    FakeFunction nt_;
    std::array<Engine, engine_count> engines_;
    plx::twin::Host *host_ = nullptr;
    plx::pmd::EalMemory memory_;
    void *window_ = nullptr; ///< what EAL mapped for BAR2, while the twin's window stands there
};

} // namespace test

#endif
