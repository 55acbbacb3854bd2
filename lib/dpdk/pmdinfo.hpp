// SPDX-License-Identifier: BSD-3-Clause
// The text that dpdk-pmdinfo.py reads in a driver. DPDK generates it from marker symbols, which it
// does not find in C++ objects because of mangled names. So it is generated here, from the table of
// ids by which the driver is matched.
#ifndef NTB_DPDK_PMDINFO_HPP
#define NTB_DPDK_PMDINFO_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <bus_pci_driver.h>

namespace dpdk
{

struct PmdInfo {
    std::string_view name;
    std::string_view params;
    std::string_view kmod;
    std::span<const rte_pci_id> ids; ///< up to the first without a vendor
};

/// Counts, and writes where there is room.
class PmdInfoWriter
{
public:
    constexpr explicit PmdInfoWriter(char *out) : out_(out) {}
    constexpr void text(std::string_view text)
    {
        for (const char c : text)
            put(c);
    }
    constexpr void number(uint32_t value)
    {
        if (value >= 10)
            number(value / 10);
        put(static_cast<char>('0' + value % 10));
    }
    constexpr void put(char c)
    {
        if (out_ != nullptr)
            out_[length_] = c;
        ++length_;
    }
    constexpr size_t length() const { return length_; }

private:
    char *out_;
    size_t length_ = 0;
};

constexpr size_t write_pmd_info(const PmdInfo &info, char *out)
{
    PmdInfoWriter w(out);
    w.put('\0'); // the reader takes the text for part of a printable neighbour otherwise
    w.text("PMD_INFO_STRING= {\"name\":\"");
    w.text(info.name);
    w.text("\",\"params\":\"");
    w.text(info.params);
    w.text("\",\"kmod\":\"");
    w.text(info.kmod);
    w.text("\",\"pci_ids\":[");
    bool first = true;
    for (const rte_pci_id &id : info.ids) {
        if (id.vendor_id == 0)
            break;
        w.text(first ? "[" : ",[");
        first = false;
        w.number(id.vendor_id);
        for (const uint32_t field :
             {id.device_id, id.subsystem_vendor_id, id.subsystem_device_id}) {
            w.put(',');
            w.number(field);
        }
        w.put(']');
    }
    w.text("]}");
    w.put('\0');
    return w.length();
}

/// The text itself: to be an object that the linker keeps.
template <const PmdInfo &Info>
consteval auto pmd_info_text()
{
    std::array<char, write_pmd_info(Info, nullptr)> text{};
    write_pmd_info(Info, text.data());
    return text;
}

} // namespace dpdk

#endif
