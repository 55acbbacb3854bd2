// SPDX-License-Identifier: BSD-3-Clause
// A peer that has the chip and the wire format and no good intentions: it writes what it likes into
// the block that is exposed to it.
#ifndef TEST_FAULT_HOSTILE_HPP
#define TEST_FAULT_HOSTILE_HPP

#include "queue/wire.hpp"
#include <bench_pair.hpp>

#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace fault
{

namespace twin = plx::twin;
namespace wire = plx::wire;

inline uint32_t crc32c(const void *data, size_t bytes)
{
    const auto *at = static_cast<const uint8_t *>(data);
    uint32_t crc = ~0u;
    for (size_t i = 0; i < bytes; ++i) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; ++bit)
            crc = crc >> 1 ^ (0x82f63b78 & (0 - (crc & 1)));
    }
    return ~crc;
}

/// The chips and blocks of memory that this process holds: what came over a cable, and its own.
inline std::vector<int> twin_descriptors()
{
    namespace fs = std::filesystem;
    std::vector<int> found;
    for (const fs::directory_entry &entry : fs::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const std::string target = fs::read_symlink(entry.path(), gone).string();
        if (target.starts_with("/memfd:plx-twin-"))
            found.push_back(std::stoi(entry.path().filename().string()));
    }
    return found;
}

/// Fills every chip that this process can write, its own and its peer's, as @p word gives it.
template <typename Word>
void overwrite_chips(Word word)
{
    for (const int fd : twin_descriptors()) {
        const std::string link = "/proc/self/fd/" + std::to_string(fd);
        const std::string target = std::filesystem::read_symlink(link).string();
        struct stat st {
        };
        if (!target.starts_with("/memfd:plx-twin-chip") || fstat(fd, &st) != 0)
            continue;
        const auto bytes = static_cast<size_t>(st.st_size);
        void *const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ASSERT_NE(at, MAP_FAILED);
        for (size_t i = 0; i < bytes / sizeof(uint32_t); ++i)
            __atomic_store_n(static_cast<uint32_t *>(at) + i, word(), __ATOMIC_RELAXED);
        munmap(at, bytes);
    }
}

/// Every seal on every one of them. @return how many held
inline unsigned seal_all()
{
    unsigned held = 0;
    for (const int fd : twin_descriptors())
        for (const int seal :
             {F_SEAL_FUTURE_WRITE, F_SEAL_WRITE, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL})
            held += fcntl(fd, F_ADD_SEALS, seal) == 0 ? 1 : 0;
    return held;
}

class Hostile
{
public:
    explicit Hostile(const std::string &cable) : cable_(cable)
    {
        twin::Config config;
        config.cable = cable_.c_str();
        twin::Error error{};
        EXPECT_EQ(twin::attach(config, &host_, &error), 0) << error.text;
        if (host_ == nullptr)
            return;
        const int rc = twin::memory_add(host_, block_bytes, -1, false, &block_);
        EXPECT_EQ(rc, 0);
        if (rc != 0)
            return;
        // The link goes down once more if the victim sees our chip later than we see its: only
        // what it says shows that the link is up for both.
        EXPECT_TRUE(plx::test::await([this] {
            if (!is_open())
                open();
            return heard(&victim_);
        }));
        window_ = static_cast<volatile uint8_t *>(twin::bar(host_, exposed_bar).base);
    }
    ~Hostile() { twin::detach(host_); }
    Hostile(const Hostile &) = delete;
    Hostile &operator=(const Hostile &) = delete;

    /// Takes the link down and lets it train again at once.
    void break_link()
    {
        twin::inject(host_, twin::Fault::link_down, 1);
        twin::inject(host_, twin::Fault::link_down, 0);
    }

    /// What an honest peer of these sizes says.
    wire::Hello honest() const
    {
        wire::Hello h{};
        h.magic = wire::magic;
        h.major = wire::version_major;
        h.minor = wire::version_minor;
        h.bytes = sizeof(h);
        h.state = wire::HelloState::up;
        h.epoch = epoch_;
        h.block_bytes = block_bytes;
        h.qp_count = 1;
        h.ring_lines = 256;
        h.buffer_ring_lines = 32;
        h.buf_bytes = 2048;
        h.buf_begin = static_cast<uint32_t>(wire::queue_area_end(1, 256, 32) / wire::line_bytes);
        h.buf_end = block_bytes / wire::line_bytes;
        h.max_message = 65536;
        h.heartbeat_us = 10000;
        h.seed = 0x1234567;
        return h;
    }
    /// With a good CRC.
    void say(wire::Hello hello)
    {
        hello.seq = ++seq_;
        hello.crc = crc32c(&hello, offsetof(wire::Hello, crc));
        store(wire::hello_offset, &hello, sizeof(hello));
    }
    /// What the victim says; false: nothing that is whole.
    bool heard(wire::Hello *out) const
    {
        std::memcpy(out, block_.base, sizeof(*out));
        return out->magic == wire::magic && out->crc == crc32c(out, offsetof(wire::Hello, crc));
    }
    /// As a new peer through bring-up. @return whether the victim has taken it for a good one
    bool connect()
    {
        ++epoch_;
        return plx::test::await([this] {
            if (!heard(&victim_))
                return false;
            wire::Hello mine = honest();
            mine.ack = victim_.epoch;
            say(mine);
            return victim_.state == wire::HelloState::up && victim_.ack == epoch_;
        });
    }

    // What lies in the victim's block, as doc/wire-protocol.md has it.
    uint64_t seed() const { return wire::mix(victim_.seed ^ wire::mix(epoch_)); }
    uint32_t ring_tag() const { return wire::ring_base(seed(), 0) + 1; } ///< of the first lap
    uint32_t back() const { return wire::back_base(seed(), 0); }
    size_t ring(uint32_t line) const
    {
        return wire::ring_offset(0, victim_.ring_lines, victim_.buffer_ring_lines) +
               line % victim_.ring_lines * wire::line_bytes;
    }
    size_t credit() const
    {
        return wire::credit_offset(0, victim_.ring_lines, victim_.buffer_ring_lines);
    }
    size_t buffer_line_at(uint32_t line) const
    {
        return wire::buffer_ring_offset(0, victim_.ring_lines, victim_.buffer_ring_lines) +
               line % victim_.buffer_ring_lines * wire::line_bytes;
    }
    /// Whether the victim has made receive buffers available to this peer, whose block has the
    /// sizes of honest().
    bool has_buffers() const
    {
        uint64_t word = 0;
        std::memcpy(&word,
                    static_cast<const char *>(block_.base) + wire::buffer_ring_offset(0, 256, 32),
                    sizeof(word));
        return wire::word_tag(word) == wire::back_base(own_seed(), 0) + 1;
    }
    uint64_t own_seed() const { return wire::mix(honest().seed ^ wire::mix(victim_.epoch)); }
    const wire::Hello &victim() const { return victim_; }
    twin::Host *host() { return host_; }

    void store(size_t offset, const void *from, size_t bytes)
    {
        const auto *words = static_cast<const uint8_t *>(from);
        for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
            uint64_t word;
            std::memcpy(&word, words + i, sizeof(word));
            put(offset + i, word);
        }
    }
    void put(size_t offset, uint64_t word)
    {
        *reinterpret_cast<volatile uint64_t *>(window_ + offset) = word;
    }
    void put_line_head(uint32_t line, uint32_t length, unsigned kind, unsigned flags = 0)
    {
        put(ring(line), uint64_t{ring_tag()} | uint64_t{length & 0xffffff} << 32 |
                            uint64_t{kind & 3} << 56 | uint64_t{flags & 0x3f} << 58);
    }
    /// A line of the receive-buffer ring, of the first lap; the same offset in each place.
    void put_buffer_line(uint32_t line, uint32_t count, uint32_t offset_lines)
    {
        for (size_t i = 8; i < wire::line_bytes; i += 8)
            put(buffer_line_at(line) + i, uint64_t{offset_lines} << 32 | offset_lines);
        put(buffer_line_at(line), uint64_t{back() + 1} | uint64_t{count} << 32);
    }

    static constexpr uint32_t block_bytes = 4u << 20;
    static constexpr unsigned exposed_bar = 2;

private:
    bool is_open() const
    {
        const uint32_t at =
            plx::test::link_block + plx::test::reg::bar_setup(plx::test::Side::link, exposed_bar);
        const uint32_t xlat = plx::test::link_block + plx::test::reg::bar_xlat(exposed_bar);
        return plx::test::link_is_up(host_) &&
               twin::csr_read32(host_, at) == (~(block_bytes - 1) | 0xC) &&
               // A chip that was kept still shows the block of the one before.
               twin::csr_read32(host_, xlat) == static_cast<uint32_t>(block_.bus) &&
               twin::csr_read32(host_, xlat + 4) == static_cast<uint32_t>(block_.bus >> 32);
    }
    void open()
    {
        if (!plx::test::link_is_up(host_))
            return; // what is programmed before is lost with the reset of the link side
        plx::test::bring_up(host_);
        plx::test::open_inbound(host_, exposed_bar, block_.bus, block_bytes);
    }

    std::string cable_;
    twin::Host *host_ = nullptr;
    twin::Memory block_{};
    volatile uint8_t *window_ = nullptr;
    wire::Hello victim_{};
    uint32_t epoch_ = 0x1000;
    uint32_t seq_ = 0;
};

} // namespace fault

#endif
