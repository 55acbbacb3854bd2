// SPDX-License-Identifier: BSD-3-Clause
#include "config/config.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

using namespace ntbd;

namespace
{
Config right(const std::string &text)
{
    Config config;
    std::string error;
    EXPECT_TRUE(parse_config(text, "file", &config, &error)) << error;
    return config;
}

std::string wrong(const std::string &text)
{
    Config config;
    config.socket = "/untouched";
    std::string error;
    EXPECT_FALSE(parse_config(text, "file", &config, &error)) << text;
    EXPECT_EQ(config.socket, "/untouched");
    return error;
}

TEST(DaemonConfig, HasDefaults)
{
    const Config config = right("socket /run/ntbmsg/a.sock\n");
    EXPECT_EQ(config.socket, "/run/ntbmsg/a.sock");
    EXPECT_EQ(config.mode, 0666u);
    EXPECT_TRUE(config.device.empty());
    EXPECT_EQ(config.carrier, CarrierChoice::automatic);
    EXPECT_EQ(right("socket /a\ncarrier direct\n").carrier, CarrierChoice::direct);
    EXPECT_FALSE(config.user);
    EXPECT_EQ(config.ring_bytes, 262144u);
    EXPECT_TRUE(config.allows(12345));
    EXPECT_EQ(config.quota_of(12345), Quota{});
}

TEST(DaemonConfig, ReadsEachLine)
{
    const Config config = right("# a comment\n"
                                "socket /a\n"
                                "\n"
                                "mode 0600 # another one\n"
                                "device raw_plx_ntb0\n"
                                "eal --no-pci --in-memory\n"
                                "eal --vdev=raw_plx_ntb0,cable=/c\n"
                                "carrier daemon\n"
                                "user 4711\n"
                                "ring 128K\n"
                                "allow root 4712\n"
                                "allow 4713\n"
                                "quota default connections 7 bytes 1M segments 3\n"
                                "quota 4712 clients 1 listeners 2\n");
    EXPECT_EQ(config.mode, 0600u);
    EXPECT_EQ(config.device, "raw_plx_ntb0");
    EXPECT_EQ(config.eal, (std::vector<std::string>{"--no-pci", "--in-memory",
                                                    "--vdev=raw_plx_ntb0,cable=/c"}));
    EXPECT_EQ(config.carrier, CarrierChoice::daemon);
    EXPECT_EQ(config.user, 4711u);
    EXPECT_EQ(config.group, 4711u);
    EXPECT_EQ(config.ring_bytes, 131072u);
    EXPECT_TRUE(config.allows(0) && config.allows(4712) && config.allows(4713));
    EXPECT_FALSE(config.allows(4711));
    EXPECT_EQ(config.quota_of(1), (Quota{256, 256, 7, 1 << 20, 3}));
    EXPECT_EQ(config.quota_of(4712), (Quota{1, 2, 7, 1 << 20, 3}));
}

TEST(DaemonConfig, NamesTheLineThatIsWrong)
{
    const std::string begin = "socket /a\n";
    EXPECT_EQ(wrong(begin + "sockets /a\n"), "file:2: 'sockets' is none of socket, mode, device, "
                                             "eal, carrier, user, ring, allow, quota");
    EXPECT_EQ(wrong(begin + "\nmode 888\n"), "file:3: '888' is no octal mode up to 0777");
    EXPECT_EQ(wrong(begin + "mode 1777\n"), "file:2: '1777' is no octal mode up to 0777");
    EXPECT_EQ(wrong(begin + "mode\n"), "file:2: 'mode' is expected with one word behind it");
    EXPECT_EQ(wrong(begin + "socket /b\n"), "file:2: a second line 'socket'");
    EXPECT_EQ(wrong("socket a\n"), "file:1: 'a' is no absolute path of at most 107 bytes");
    EXPECT_EQ(wrong("socket /" + std::string(107, 'x')).substr(0, 7), "file:1:");
    EXPECT_EQ(wrong("# nothing\n"), "file:1: a line 'socket PATH' is expected");
    EXPECT_EQ(wrong(begin + "user nobody-like-this\n"),
              "file:2: there is no user 'nobody-like-this'");
    EXPECT_EQ(wrong(begin + "user 4294967295\n"), "file:2: there is no user '4294967295'");
    EXPECT_EQ(wrong(begin + "allow\n"), "file:2: 'allow USER...' is expected");
    EXPECT_EQ(wrong(begin + "eal\n"), "file:2: 'eal ARGUMENT...' is expected");
    EXPECT_EQ(wrong(begin + "eal --no-pci\n"), "file:2: 'eal' needs a line 'device NAME'");
    for (const char *ring :
         {"4095", "2048", "6000", "32M", "64k", "K", "-1", "99999999999999999999"})
        EXPECT_EQ(wrong(begin + "ring " + ring + "\n"),
                  std::string("file:2: '") + ring + "' is no power of two from 4096 to 16777216");
    const std::string form = "file:2: 'quota default|USER [clients N] [listeners N] [connections "
                             "N] [bytes N] [segments N]' is expected";
    EXPECT_EQ(wrong(begin + "quota default\n"), form);
    EXPECT_EQ(wrong(begin + "quota default clients\n"), form);
    EXPECT_EQ(wrong(begin + "quota default rings 1\n"), form);
    EXPECT_EQ(wrong(begin + "quota default clients 1000001\n"),
              "file:2: '1000001' is no number up to 1000000");
    EXPECT_EQ(wrong(begin + "quota default bytes 1x\n"), "file:2: '1x' is no number");
    EXPECT_EQ(wrong(begin + "quota default bytes 99999999999G\n"),
              "file:2: '99999999999G' is no number");
    EXPECT_EQ(wrong(begin + "quota root clients 5 clients 6\n"),
              "file:2: 'clients' twice in one line");
    EXPECT_EQ(wrong(begin + "quota root bytes 5 clients 6 bytes 5\n"),
              "file:2: 'bytes' twice in one line");
    EXPECT_EQ(wrong(std::string("socket /a\0b\n", 12)), "file:1: a NUL byte");
    EXPECT_EQ(wrong(begin + std::string("device d\0\n", 10)), "file:2: a NUL byte");
}

TEST(DaemonConfig, SaysThatAFileCannotBeRead)
{
    Config config;
    std::string error;
    EXPECT_FALSE(read_config("/nothing/there", &config, &error));
    EXPECT_EQ(error, "/nothing/there: No such file or directory");
    EXPECT_FALSE(read_config("/proc", &config, &error));
    EXPECT_EQ(error, "/proc: Is a directory");
    EXPECT_FALSE(read_config("/dev/null", &config, &error));
    EXPECT_EQ(error.find("/dev/null:0: "), 0u) << error;
}

TEST(DaemonConfig, KnowsWhatAReloadCannotChange)
{
    const Config now = right("socket /a\ndevice d\neal -x\n");
    EXPECT_EQ(fixed_changes(now, right("socket /a\ndevice d\neal -x\nring 4K\nallow root\n")), "");
    EXPECT_EQ(fixed_changes(now, right("socket /b\nmode 0600\nuser 5\n")),
              "socket, mode, device, eal, user");
}
} // namespace
