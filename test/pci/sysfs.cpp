// SPDX-License-Identifier: BSD-3-Clause
#include "sysfs.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace test
{

namespace
{

namespace fs = std::filesystem;

constexpr uint32_t nt0_virtual = 0x3E000;

[[noreturn]] void die(const std::string &what)
{
    throw std::system_error(errno, std::generic_category(), what);
}

std::string hex(uint64_t value)
{
    char text[32];
    std::snprintf(text, sizeof(text), "0x%06" PRIx64, value);
    return text;
}

void write_text(const fs::path &path, const std::string &text)
{
    std::ofstream(path) << text << '\n';
}

/// A file of @p bytes with @p words in it, holes between them.
void write_words(const fs::path &path, uint64_t bytes, const std::map<uint32_t, uint32_t> &words)
{
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0)
        die(path);
    for (const auto &[offset, value] : words)
        if (offset + sizeof(value) <= bytes &&
            pwrite(fd, &value, sizeof(value), offset) != sizeof(value))
            die(path);
    close(fd);
}

std::map<uint32_t, uint32_t> config_of(const FakeFunction &f)
{
    std::map<uint32_t, uint32_t> words = f.config;
    words.insert({{0x00, uint32_t{f.device} << 16 | f.vendor},
                  {0x04, 0x00100002}, // memory on, bus master off; there is a capability list
                  {0x08, f.class_code << 8}});
    for (unsigned i = 0; i < 6; ++i) {
        const FakeBar &bar = f.bars[i];
        if (bar.bytes == 0)
            continue;
        const bool is_64bit = (bar.flags & flag_64bit) != 0;
        const uint32_t type = (is_64bit ? 4u : 0u) | ((bar.flags & flag_prefetch) != 0 ? 8u : 0u);
        words[0x10 + 4 * i] = static_cast<uint32_t>(bar.start) | type;
        if (is_64bit)
            words[0x14 + 4 * i] = static_cast<uint32_t>(bar.start >> 32);
    }
    return words;
}

} // namespace

FakeFunction::FakeFunction()
{
    config = {{0x34, 0x40},
              {0x40, 0x0003C801}, // power management, then
              {0xC8, 0x00000009}, // vendor-specific, the last
              {0xE0, 0x874910B5},
              {0xE4, 0x000000BA}};
    registers[0x360] = 0x40002100; // upstream port 0, NT0 on port 1, A-LUT for it
    rename(device, 0, nt0_virtual);
}

void FakeFunction::rename(uint16_t new_device, uint32_t nt_port_id, uint32_t nt_base)
{
    device = new_device;
    config[0xC8C] = nt_port_id;
    registers[nt_base] = uint32_t{device} << 16 | vendor;
    registers[nt_base + 0xC8C] = nt_port_id;
    registers[nt_base + 0xC90] = 0x0008;
}

void FakeFunction::mirror_bars(uint32_t nt_base)
{
    const auto words = config_of(*this);
    for (uint32_t offset = 0x10; offset < 0x28; offset += 4)
        if (const auto word = words.find(offset); word != words.end())
            registers[nt_base + offset] = word->second;
}

Sysfs::Sysfs()
{
    char path[] = "/tmp/ntbmsg-sysfs.XXXXXX";
    if (mkdtemp(path) == nullptr)
        die(path);
    root_ = path;
    for (const char *folder : {"devices", "dev", "class"})
        fs::create_directory(fs::path(root_) / folder);
    setenv("SYSFS_PCI_DEVICES", (root_ + "/devices").c_str(), 1);
    setenv("TEST_UIO_ROOT", root_.c_str(), 1);
}

Sysfs::~Sysfs()
{
    for (const auto &[address, fd] : fifos_)
        close(fd);
    std::error_code ignored;
    fs::remove_all(root_, ignored);
}

std::string Sysfs::file(const std::string &address, const std::string &name) const
{
    return root_ + "/devices/" + address + "/" + name;
}

void Sysfs::plug(const FakeFunction &f)
{
    const fs::path entry = fs::path(root_) / "devices" / f.address;
    const fs::path folder =
        f.bridges.empty() ? entry : fs::path(root_) / "tree" / f.bridges / f.address;
    fs::create_directories(folder);
    if (folder != entry)
        fs::create_directory_symlink(folder, entry);
    write_text(folder / "vendor", hex(f.vendor));
    write_text(folder / "device", hex(f.device));
    write_text(folder / "subsystem_vendor", hex(f.vendor));
    write_text(folder / "subsystem_device", hex(0x8749));
    write_text(folder / "class", hex(f.class_code));
    write_text(folder / "numa_node", "0");
    std::string resource;
    for (unsigned i = 0; i < 6; ++i) {
        const FakeBar &bar = f.bars[i];
        resource += hex(bar.start) + " " + hex(bar.bytes == 0 ? 0 : bar.start + bar.bytes - 1) +
                    " " + hex(bar.flags) + "\n";
        if (bar.bytes == 0)
            continue;
        const fs::path path = folder / ("resource" + std::to_string(i));
        write_words(path, bar.bytes, i == 0 ? f.registers : std::map<uint32_t, uint32_t>{});
        if (f.wc_files && (bar.flags & flag_prefetch) != 0)
            fs::create_hard_link(path, path.string() + "_wc");
    }
    write_text(folder / "resource", resource);
    write_words(folder / "config", f.config_bytes, config_of(f));
    if (f.driver.empty())
        return;
    fs::create_symlink("../../drivers/" + f.driver, folder / "driver");

    const unsigned number = next_number_++;
    const std::string uio = "uio" + std::to_string(number);
    numbers_[f.address] = number;
    fs::create_directories(folder / "uio" / uio);
    const fs::path device = fs::path(root_) / "class" / uio / "device";
    fs::create_directories(device.parent_path());
    fs::create_symlink(folder, device);
    const fs::path fifo = fs::path(root_) / "dev" / uio;
    if (mkfifo(fifo.c_str(), 0600) != 0)
        die(fifo);
    fifos_[f.address] = open(fifo.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

void Sysfs::unplug(const std::string &address)
{
    const fs::path entry = fs::path(root_) / "devices" / address;
    if (fs::is_symlink(entry))
        fs::remove_all(fs::read_symlink(entry));
    fs::remove_all(entry);
    const auto fifo = fifos_.find(address);
    if (fifo == fifos_.end())
        return;
    close(fifo->second);
    fifos_.erase(fifo);
    const std::string uio = "uio" + std::to_string(numbers_[address]);
    fs::remove(fs::path(root_) / "dev" / uio);
    fs::remove_all(fs::path(root_) / "class" / uio);
}

void Sysfs::interrupt(const std::string &address) const
{
    const int fd = fifos_.at(address);
    const uint32_t count = 1;
    int unread = 0;
    if (ioctl(fd, FIONREAD, &unread) != 0 ||
        (unread == 0 && write(fd, &count, sizeof(count)) != sizeof(count)))
        std::abort();
}

uint32_t Sysfs::read32(const std::string &address, const std::string &name, uint64_t offset) const
{
    const int fd = open(file(address, name).c_str(), O_RDONLY | O_CLOEXEC);
    uint32_t value = 0;
    if (fd < 0 || pread(fd, &value, sizeof(value), static_cast<off_t>(offset)) != sizeof(value))
        die(file(address, name));
    close(fd);
    return value;
}

void Sysfs::write32(const std::string &address, const std::string &name, uint64_t offset,
                    uint32_t value) const
{
    const int fd = open(file(address, name).c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0 || pwrite(fd, &value, sizeof(value), static_cast<off_t>(offset)) != sizeof(value))
        die(file(address, name));
    close(fd);
}

void Sysfs::vanish(const std::string &address) const
{
    for (const char *name : {"resource0", "resource2", "resource4"})
        if (truncate(file(address, name).c_str(), 0) != 0)
            die(file(address, name));
}

} // namespace test
