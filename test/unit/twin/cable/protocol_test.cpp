// SPDX-License-Identifier: BSD-3-Clause
// What a stranger on the socket may send: nothing of it crashes, blocks or misleads a host.
#include "bench_pair.hpp"
#include "cable/message.hpp"
#include "chip/chip.hpp"
#include "chip/power_on.hpp"
#include "far_host.hpp"
#include "memory/sealed.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>

using namespace plx;
using namespace plx::test;
using twin::Message;
using twin::MessageType;

namespace
{
// One that speaks whatever a test likes.
class Stranger
{
public:
    explicit Stranger(const std::string &path)
    {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        strcpy(address.sun_path, path.c_str());
        fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);
    }
    ~Stranger() { close(fd_); }
    Stranger(const Stranger &) = delete;
    Stranger &operator=(const Stranger &) = delete;

    void bytes(const void *data, size_t size)
    {
        EXPECT_EQ(send(fd_, data, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
    }
    bool says(const Message &message, int fd = -1) { return twin::message_send(fd_, message, fd); }
    void greets()
    {
        Message m;
        m.type = MessageType::greeting;
        m.bar_bytes[0] = m.bar_bytes[1] = 4 * mib;
        m.read_rid = read_rid;
        EXPECT_TRUE(says(m));
    }
    void shows_chip(int chip)
    {
        Message m;
        m.type = MessageType::chip;
        EXPECT_TRUE(says(m, chip));
    }
    /// The type of the next message, or nothing once the host hung up.
    /// @param descriptor what came along, now the caller's; -1: nothing
    bool hears(MessageType *type, int *descriptor = nullptr)
    {
        pollfd waiting{fd_, POLLIN, 0};
        Message m;
        int fd = -1;
        if (poll(&waiting, 1, patience_s * 1000) != 1 ||
            twin::message_receive(fd_, &m, &fd) != twin::Received::message)
            return false;
        if (descriptor != nullptr)
            *descriptor = fd;
        else if (fd >= 0)
            close(fd);
        *type = m.type;
        return true;
    }
    bool is_hung_up_on()
    {
        MessageType type;
        for (int i = 0; i < 100; i++)
            if (!hears(&type))
                return true;
        return false;
    }

private:
    int fd_ = -1;
};

class TwinHostile : public BetweenProcesses
{
protected:
    int chip = -1;

    TwinHostile()
    {
        config.bar2_bytes = 4 * mib;
        config.remap_wait_us = 1000;
        chip = twin::chip_create();
        twin::Chip *const mapped = twin::chip_map(chip);
        mapped->id.store(twin::fresh_id());
        twin::power_on(*mapped, {});
        twin::chip_unmap(mapped);
    }
    ~TwinHostile() override { close(chip); }
    void SetUp() override
    {
        twin::Error error{};
        ASSERT_EQ(twin::attach(config, &near, &error), 0) << error.text;
    }

    void expect_alive()
    {
        EXPECT_EQ(twin::csr_read32(near, virt_block + reg::pci_id), 0x87B010B5u);
        FarHost far(config);
        EXPECT_EQ(far(Do::attach), 0);
        EXPECT_TRUE(await([&] { return twin::cable_connected(near); }));
    }
    /// A stranger that got as far as an end of the cable.
    void become_end(Stranger &stranger)
    {
        stranger.greets();
        stranger.shows_chip(chip);
        ASSERT_TRUE(await([&] { return twin::cable_connected(near); }));
    }
};

TEST_F(TwinHostile, Garbage)
{
    for (const size_t size : {1u, 5u, 8u, 71u, 73u, 4096u}) {
        Stranger stranger(path);
        const std::vector<uint8_t> noise(size, 0xA5);
        stranger.bytes(noise.data(), size);
        EXPECT_TRUE(stranger.is_hung_up_on()) << size;
    }
    expect_alive();
}

TEST_F(TwinHostile, TruncatedAndOverlongMessages)
{
    for (const size_t size : {8ul, sizeof(Message) - 1, sizeof(Message) + 1}) {
        Stranger stranger(path);
        uint8_t buffer[sizeof(Message) + 1] = {};
        const Message m;
        memcpy(buffer, &m, sizeof(m));
        stranger.bytes(buffer, size);
        EXPECT_TRUE(stranger.is_hung_up_on()) << size;
    }
    expect_alive();
}

TEST_F(TwinHostile, AnotherVersionIsRefused)
{
    Stranger stranger(path);
    Message m;
    m.type = MessageType::greeting;
    m.version = twin::message_version + 1;
    stranger.says(m);
    MessageType type{};
    ASSERT_TRUE(stranger.hears(&type));
    EXPECT_EQ(type, MessageType::greeting);
    ASSERT_TRUE(stranger.hears(&type));
    EXPECT_EQ(type, MessageType::refusal);
    expect_alive();
}

TEST_F(TwinHostile, SilenceMakesRoomForOthers)
{
    Stranger stranger(path);
    expect_alive();
}

TEST_F(TwinHostile, EverythingOutOfTurnEndsTheConnection)
{
    for (const MessageType type : {MessageType::chip, MessageType::memory, MessageType::follow,
                                   MessageType::followed, static_cast<MessageType>(999)}) {
        Stranger stranger(path);
        Message m;
        m.type = type;
        stranger.says(m, chip);
        EXPECT_TRUE(stranger.is_hung_up_on()) << static_cast<int>(type);
    }
    expect_alive();
}

TEST_F(TwinHostile, ImpossibleWindowsAreRefused)
{
    for (const uint64_t bytes : {uint64_t{0}, 3 * mib, uint64_t{1} << 63, ~uint64_t{0}}) {
        Stranger stranger(path);
        Message m;
        m.type = MessageType::greeting;
        m.bar_bytes[0] = bytes;
        m.bar_bytes[1] = 4 * mib;
        stranger.says(m);
        EXPECT_TRUE(stranger.is_hung_up_on()) << bytes;
    }
    expect_alive();
}

TEST_F(TwinHostile, DescriptorsThatAreNoChip)
{
    const int unsealed = memfd_create("unsealed", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(unsealed, 512 << 10), 0);
    const int small = twin::sealed_create("small", 4096, false);
    const int folder_fd = open(folder.c_str(), O_RDONLY | O_CLOEXEC);
    for (const int fd : {unsealed, small, folder_fd, -1}) {
        Stranger stranger(path);
        stranger.greets();
        stranger.shows_chip(fd);
        EXPECT_TRUE(stranger.is_hung_up_on());
    }
    for (const int fd : {unsealed, small, folder_fd})
        close(fd);
    EXPECT_FALSE(twin::cable_connected(near));
    expect_alive();
}

TEST_F(TwinHostile, LifelinesThatAreNoPipe)
{
    const int folder_fd = open(folder.c_str(), O_RDONLY | O_CLOEXEC);
    Message m;
    m.type = MessageType::lifeline;
    for (const int fd : {chip, folder_fd, -1}) {
        Stranger stranger(path);
        ASSERT_NO_FATAL_FAILURE(become_end(stranger));
        stranger.says(m, fd);
        EXPECT_TRUE(stranger.is_hung_up_on());
    }
    close(folder_fd);
    expect_alive();
}

TEST_F(TwinHostile, ALifelineEndsOnceAndIsThePeersOnly)
{
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    Message m;
    m.type = MessageType::lifeline;
    {
        Stranger twice(path);
        ASSERT_NO_FATAL_FAILURE(become_end(twice));
        twice.says(m, ends[0]);
        twice.says(m, ends[0]);
        EXPECT_TRUE(twice.is_hung_up_on());
    }
    Stranger stranger(path);
    ASSERT_NO_FATAL_FAILURE(become_end(stranger));
    stranger.says(m, ends[0]);
    EXPECT_EQ(write(ends[1], "", 1), 1) << "what it says is no one's business";
    EXPECT_TRUE(twin::cable_connected(near));
    close(ends[1]);
    EXPECT_TRUE(stranger.is_hung_up_on());
    close(ends[0]);
    expect_alive();
}

// Seals that leave room for others, or forbid what the next end has to do with it: map it writable.
TEST_F(TwinHostile, ChipsWhoseSealsMayChange)
{
    constexpr int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;
    struct stat whole;
    ASSERT_EQ(fstat(chip, &whole), 0);
    for (const int seals : {size_seals, size_seals | F_SEAL_FUTURE_WRITE,
                            size_seals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL}) {
        const int fd = memfd_create("chip", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        ASSERT_EQ(ftruncate(fd, whole.st_size), 0);
        ASSERT_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
        Stranger stranger(path);
        stranger.greets();
        stranger.shows_chip(fd);
        EXPECT_TRUE(stranger.is_hung_up_on()) << seals;
        close(fd);
    }
    EXPECT_EQ(fcntl(chip, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1) << "one of ours";
    expect_alive();
}

TEST_F(TwinHostile, AChipWithoutIds)
{
    const int blank = twin::chip_create();
    Stranger stranger(path);
    stranger.greets();
    stranger.shows_chip(blank);
    EXPECT_TRUE(stranger.is_hung_up_on());
    close(blank);
    expect_alive();
}

// Kept for who comes next, it would make two hosts of one chip.
TEST_F(TwinHostile, ItsOwnChipInPlaceOfAnother)
{
    Stranger stranger(path);
    stranger.greets();
    MessageType type{};
    int own = -1;
    while (own < 0)
        ASSERT_TRUE(stranger.hears(&type, &own));
    ASSERT_EQ(type, MessageType::chip);
    stranger.shows_chip(own);
    EXPECT_TRUE(stranger.is_hung_up_on());
    close(own);
    EXPECT_FALSE(twin::cable_connected(near));
    expect_alive();
}

// A good chip, while its process lived.
TEST_F(TwinHostile, AChipThatIsSpoiltLater)
{
    {
        Stranger stranger(path);
        become_end(stranger);
        twin::Chip *const mapped = twin::chip_map(chip);
        ASSERT_NE(mapped, nullptr);
        mapped->csr[(virt_block + reg::nt_port_id) / 4].store(0x80000001);
        twin::chip_unmap(mapped);
    }
    ASSERT_TRUE(await([&] { return !twin::cable_connected(near); }));
    FarHost far(config);
    EXPECT_EQ(far(Do::attach), 0);
    EXPECT_EQ(far(Do::csr_read, virt_block + reg::nt_port_id), 0u);
    EXPECT_TRUE(await([&] { return twin::cable_connected(near); }));
}

TEST_F(TwinHostile, MemoryThatIsNone)
{
    const int small = twin::sealed_create("small", 4096, false);
    struct Claim {
        uint32_t slot;
        uint64_t bus;
        uint64_t bytes;
        int fd;
    };
    const Claim claims[] = {
        {256, 0, mib, -1},
        {~0u, 0, mib, -1},
        {0, 4096, mib, -1},
        {0, 0, 3 * mib, -1},
        {0, 0, uint64_t{1} << 40, -1},
        {0, 0, mib, small},
    };
    for (const Claim &claim : claims) {
        Stranger stranger(path);
        become_end(stranger);
        Message m;
        m.type = MessageType::memory;
        m.slot = claim.slot;
        m.present = 1;
        m.bus = claim.bus;
        m.bytes = claim.bytes;
        m.page_bytes = ~uint64_t{0};
        stranger.says(m, claim.fd);
        EXPECT_TRUE(stranger.is_hung_up_on());
        EXPECT_TRUE(await([&] { return !twin::cable_connected(near); }));
    }
    close(small);
    expect_alive();
}

TEST_F(TwinHostile, UnsolicitedReplies)
{
    Stranger stranger(path);
    become_end(stranger);
    Message m;
    m.type = MessageType::followed;
    m.sequence = 12345;
    stranger.says(m);
    EXPECT_TRUE(stranger.is_hung_up_on());
    expect_alive();
}

TEST_F(TwinHostile, AFloodThatReadsNothingEndsTheConnection)
{
    Stranger stranger(path);
    become_end(stranger);
    Message m;
    m.type = MessageType::follow;
    bool hung_up = false;
    for (int i = 0; i < 1'000'000 && !hung_up; i++) {
        if (stranger.says(m))
            continue;
        hung_up = !twin::cable_connected(near);
        poll(nullptr, 0, 1);
    }
    EXPECT_TRUE(hung_up);
    expect_alive();
}

TEST_F(TwinHostile, AChipFullOfGarbageIsBounded)
{
    twin::Chip *mapped = twin::chip_map(chip);
    ASSERT_NE(mapped, nullptr);
    Stranger stranger(path);
    become_end(stranger);
    twin::Memory exposed{};
    ASSERT_EQ(twin::memory_add(near, mib, -1, false, &exposed), 0);
    uint64_t state = 1;
    auto *words = reinterpret_cast<uint64_t *>(mapped);
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof(twin::Chip) / 8; i++) {
            state = state * 6364136223846793005 + 1442695040888963407;
            __atomic_store_n(&words[i], state, __ATOMIC_RELAXED);
        }
        bring_up(near);
        open_inbound(near, 2, exposed.bus, mib);
        uint8_t buffer[256];
        for (uint64_t at = 0; at < config.bar2_bytes; at += 65536)
            twin::window_read(near, 2, at, buffer, sizeof(buffer), read_rid);
    }
    twin::chip_unmap(mapped);
}
} // namespace
