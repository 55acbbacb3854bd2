// SPDX-License-Identifier: BSD-3-Clause
// A register border that remembers: plain storage behind every offset, and a list of the accesses
// in their order. It knows nothing of the chip.
#ifndef TEST_SUPPORT_RECORDING_REG_IO_HPP
#define TEST_SUPPORT_RECORDING_REG_IO_HPP

#include "hw/reg_io.hpp"

#include <cstdint>
#include <map>
#include <ostream>
#include <vector>

namespace test
{

struct Access {
    enum Kind { read, write, config_read, config_write, delay };
    Kind kind;
    uint32_t offset;
    uint32_t value;
    bool operator==(const Access &) const = default;
};

inline std::ostream &operator<<(std::ostream &out, const Access &a)
{
    static const char *const names[] = {"read", "write", "config read", "config write", "delay"};
    return out << names[a.kind] << std::hex << " [" << a.offset << "] " << a.value << std::dec;
}

/// What is expected of a sequence.
using Log = std::vector<Access>;

inline Access w(uint32_t offset, uint32_t value)
{
    return {Access::write, offset, value};
}
inline void append(Log &to, const Log &more)
{
    to.insert(to.end(), more.begin(), more.end());
}

class RecordingRegIo
{
public:
    std::map<uint32_t, uint32_t> csr;
    std::map<uint32_t, uint32_t> config;
    Log log;
    bool gone = false; ///< reads give `nothing`, writes vanish
    uint32_t nothing = ~uint32_t{0};
    std::map<uint32_t, unsigned> deaf;       ///< CSR offset: how many writes it still ignores
    std::map<uint32_t, uint32_t> write_ones; ///< CSR offset: bits that a one clears

    plx::hw::RegIo io() { return {&ops, this}; }

    /// The writes since the last call, CSR and configuration, in their order.
    Log take_writes()
    {
        Log writes;
        for (const Access &a : log)
            if (a.kind == Access::write || a.kind == Access::config_write)
                writes.push_back(a);
        log.clear();
        return writes;
    }
    Log take()
    {
        Log all;
        all.swap(log);
        return all;
    }

private:
    static RecordingRegIo &self(void *ctx) { return *static_cast<RecordingRegIo *>(ctx); }

    uint32_t get(std::map<uint32_t, uint32_t> &space, Access::Kind kind, uint32_t offset)
    {
        const auto it = space.find(offset);
        const uint32_t value = gone ? nothing : it == space.end() ? 0 : it->second;
        log.push_back({kind, offset, value});
        return value;
    }
    void put(uint32_t offset, uint32_t value)
    {
        log.push_back({Access::write, offset, value});
        const auto it = deaf.find(offset);
        if (gone || (it != deaf.end() && it->second != 0 && it->second-- != 0))
            return;
        const auto ones = write_ones.find(offset);
        if (ones != write_ones.end())
            csr[offset] &= ~(value & ones->second);
        else
            csr[offset] = value;
    }

    static uint32_t read32(void *ctx, uint32_t offset)
    {
        return self(ctx).get(self(ctx).csr, Access::read, offset);
    }
    static void write32(void *ctx, uint32_t offset, uint32_t value)
    {
        self(ctx).put(offset, value);
    }
    static uint32_t config_read32(void *ctx, uint32_t offset)
    {
        return self(ctx).get(self(ctx).config, Access::config_read, offset);
    }
    static void config_write32(void *ctx, uint32_t offset, uint32_t value)
    {
        self(ctx).log.push_back({Access::config_write, offset, value});
        if (!self(ctx).gone)
            self(ctx).config[offset] = value;
    }
    static void delay_us(void *ctx, uint32_t microseconds)
    {
        self(ctx).log.push_back({Access::delay, 0, microseconds});
    }
    static constexpr plx::hw::RegIoOps ops = {read32, write32, config_read32, config_write32,
                                              delay_us};
};

} // namespace test

#endif
