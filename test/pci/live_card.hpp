// SPDX-License-Identifier: BSD-3-Clause
// A PCI function behind EAL's bus that answers as the software twin does. The driver probes, maps
// and accesses it as it would a card; in its place stands the twin:
//   BAR0 and BAR4   trapped accesses (trap.hpp), answered by the twin's registers
//   BAR2            the twin's window, put in the place of the mapped file
//   configuration   a file, kept like the twin's
//   window memory   the twin's, as its bus addresses are its own
//   interrupt       the FIFO that stands for uio_pci_generic
// The driver's calls of EAL that this takes are wrapped by the linker (--wrap); the driver itself
// is what is installed.
#ifndef TEST_PCI_LIVE_CARD_HPP
#define TEST_PCI_LIVE_CARD_HPP

#include "sysfs.hpp"

#include <string>

#include <twin.hpp>

namespace test
{

class LiveCard
{
public:
    /// Plugs a card into @p cable (mem:<name>) and into the sysfs tree.
    LiveCard(Sysfs &sysfs, const std::string &address, const std::string &cable);
    ~LiveCard();
    LiveCard(const LiveCard &) = delete;
    LiveCard &operator=(const LiveCard &) = delete;

    const std::string &address() const { return function_.address; }
    plx::twin::Host *host() { return host_; }
    bool mapped() const { return window_ != nullptr; }

private:
    friend struct CardAccess;

    Sysfs &sysfs_;
    FakeFunction function_;
    plx::twin::Host *host_ = nullptr;
    void *window_ = nullptr; ///< what EAL mapped for BAR2, while the twin's window stands there
};

} // namespace test

#endif
