// SPDX-License-Identifier: BSD-3-Clause
#include "config/config.hpp"

#include <arpa/inet.h>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <string>

namespace ntb::socket
{

namespace
{
Address at(const char *name, uint16_t port)
{
    Address address = {};
    if (strchr(name, ':') == nullptr) {
        sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
        EXPECT_EQ(inet_pton(AF_INET, name, &four.sin_addr), 1);
        EXPECT_TRUE(Address::of(reinterpret_cast<sockaddr *>(&four), sizeof(four), &address));
    } else {
        sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        EXPECT_EQ(inet_pton(AF_INET6, name, &six.sin6_addr), 1);
        EXPECT_TRUE(Address::of(reinterpret_cast<sockaddr *>(&six), sizeof(six), &address));
    }
    return address;
}

Config read(const std::string &text)
{
    Config config;
    Config::Error error;
    EXPECT_TRUE(config.parse(text.data(), text.size(), &error)) << error.line << ": " << error.text;
    return config;
}
} // namespace

TEST(Config, TakesTheFirstRuleThatFits)
{
    const Config config = read("# comment\n"
                               "use tcp * * 10.0.0.9:*\n"
                               "use ntb connect redis-* 10.0.0.0/8:6379 # more\n"
                               "use both accept nginx [fd00::/16]:8000-8100\n"
                               "use ntb * * *:22");
    EXPECT_TRUE(config.wanted(Role::Connect, "redis-benchmark", at("10.1.2.3", 6379)));
    EXPECT_FALSE(config.wanted(Role::Connect, "redis-benchmark", at("10.0.0.9", 6379)));
    EXPECT_FALSE(config.wanted(Role::Accept, "redis-server", at("10.1.2.3", 6379)));
    EXPECT_FALSE(config.wanted(Role::Connect, "redis", at("10.1.2.3", 6379)));
    EXPECT_FALSE(config.wanted(Role::Connect, "redis-cli", at("11.1.2.3", 6379)));
    EXPECT_FALSE(config.wanted(Role::Connect, "redis-cli", at("10.1.2.3", 6378)));
    EXPECT_TRUE(config.wanted(Role::Accept, "nginx", at("fd00::1", 8100)));
    EXPECT_FALSE(config.wanted(Role::Accept, "nginx", at("fd00::1", 8101)));
    EXPECT_FALSE(config.wanted(Role::Accept, "nginx", at("fd01::1", 8100)));
    EXPECT_TRUE(config.wanted(Role::Accept, "sshd", at("192.168.1.1", 22)));
    EXPECT_FALSE(config.wanted(Role::Connect, "ssh", at("10.0.0.9", 22)));
    EXPECT_FALSE(Config().wanted(Role::Connect, "ssh", at("10.0.0.9", 22)));
}

TEST(Config, NamesTheProgramsOfItsRules)
{
    const Config config = read("use tcp * ssh *:*\n"
                               "use ntb late redis-* 10.0.0.0/8:6379\n");
    EXPECT_TRUE(config.names("redis-server"));
    EXPECT_FALSE(config.names("redis"));
    EXPECT_FALSE(config.names("ssh"));
    EXPECT_FALSE(Config().names("ssh"));
}

// A program may use stdio on it, so that is said by itself.
TEST(Config, WhatWasOpenWhenAProgramWasStartedIsNotPartOfTheStar)
{
    const Config config =
        read("use tcp inherit cat *:7\nuse ntb * * *:*\nuse ntb inherit c* *:*\n");
    EXPECT_FALSE(config.wanted(Role::Inherit, "sh", at("10.0.0.1", 8)));
    EXPECT_TRUE(config.wanted(Role::Inherit, "cat", at("10.0.0.1", 8)));
    EXPECT_FALSE(config.wanted(Role::Inherit, "cat", at("10.0.0.1", 7)));
    EXPECT_TRUE(config.wanted(Role::Accept, "cat", at("10.0.0.1", 7)));
    EXPECT_FALSE(read("use ntb inherit * *:*").wanted(Role::Accept, "cat", at("10.0.0.1", 7)));
}

TEST(Config, LateIsARoleOfItsOwn)
{
    const Config config = read("use ntb late sshd *:22\n");
    EXPECT_TRUE(config.wanted(Role::Late, "sshd", at("10.0.0.1", 22)));
    EXPECT_FALSE(config.wanted(Role::Late, "sshd", at("10.0.0.1", 23)));
    EXPECT_FALSE(config.wanted(Role::Inherit, "sshd", at("10.0.0.1", 22)));
    EXPECT_FALSE(read("use ntb * * *:*\nuse ntb inherit * *:*\n")
                     .wanted(Role::Late, "sshd", at("10.0.0.1", 22)));
}

TEST(Config, FindsTheDaemonOfAPeer)
{
    const Config config =
        read("host 10.0.0.0/9 /run/a\nhost 10.0.0.0/8 /run/b\nhost fd00::7 /run/c\n");
    EXPECT_STREQ(config.daemon_of(at("10.127.0.1", 1)), "/run/a");
    EXPECT_STREQ(config.daemon_of(at("10.128.0.1", 1)), "/run/b");
    EXPECT_STREQ(config.daemon_of(at("::ffff:10.128.0.1", 1)), "/run/b");
    EXPECT_STREQ(config.daemon_of(at("fd00::7", 1)), "/run/c");
    EXPECT_EQ(config.daemon_of(at("fd00::8", 1)), nullptr);
    EXPECT_EQ(config.daemon_of(at("11.0.0.1", 1)), nullptr);
    EXPECT_STREQ(config.first_daemon(), "/run/a");
    EXPECT_EQ(read("use ntb * * *:*\n").first_daemon(), nullptr);
}

TEST(Config, HasAWindow)
{
    EXPECT_EQ(read("").spin_us(), Config::default_spin_us);
    EXPECT_EQ(read("spin 0").spin_us(), 0u);
    EXPECT_EQ(read("spin 1000\n").spin_us(), 1000u);
}

TEST(Config, SaysWhatIsWrongAndWhere)
{
    const struct {
        const char *text;
        unsigned line;
        const char *said;
    } cases[] = {
        {"\nuses x", 2, "'uses' is no keyword: use, host, spin"},
        {"use ntb connect redis", 1,
         "expected: use ntb|tcp|both connect|accept|inherit|late|* PROGRAM ADDRESS:PORT"},
        {"use udp * * *:*", 1, "'udp' is no way: ntb, tcp or both"},
        {"use ntb listen * *:*", 1, "'listen' is no role: connect, accept, inherit, late or *"},
        {"use ntb * /bin/x *:*", 1,
         "'/bin/x' is no program's name of at most 31 bytes without a folder"},
        {"use ntb * * *", 1, "'*' is no place: *:*, 10.0.0.0/8:6379, [fd00::/64]:8000-8100"},
        {"use ntb * * 10.0.0.0/33:1", 1, "'10.0.0.0/33:1' is no place"},
        {"use ntb * * fd00::1:1", 1, "'fd00::1:1' is no place"},
        {"use ntb * * *:9-8", 1, "'*:9-8' is no place"},
        {"use ntb * * *:65536", 1, "'*:65536' is no place"},
        {"use ntb * * *:* more", 1, "'more' is no part of this line: it ends before"},
        {"host 10.0.0.1", 1, "expected: host ADDRESS[/LENGTH] SOCKET"},
        {"host 10.0.0 /x", 1, "'10.0.0' is no address, or address/length"},
        {"host fd00::/129 /x", 1, "'fd00::/129' is no address, or address/length"},
        {"host 10.0.0.1 x", 1, "'x' is no absolute path of at most 107 bytes"},
        {"spin", 1, "'' is no number of microseconds up to 1000"},
        {"spin 1001", 1, "'1001' is no number of microseconds up to 1000"},
    };
    for (const auto &one : cases) {
        Config config;
        Config::Error error;
        EXPECT_FALSE(config.parse(one.text, strlen(one.text), &error)) << one.text;
        EXPECT_EQ(error.line, one.line) << one.text;
        EXPECT_EQ(std::string(error.text).rfind(one.said, 0), 0u) << error.text;
    }
}

TEST(Config, IsBounded)
{
    std::string rules, hosts, long_word(100000, 'x');
    for (unsigned i = 0; i < Config::max_rules; i++) {
        rules += "use ntb * * *:*\n";
        hosts += "host 10.0.0.1 /x\n";
    }
    read(rules + hosts);
    for (const std::string &text : {rules + "use ntb * * *:*", hosts + "host 10.0.0.1 /x",
                                    long_word, "use ntb * " + long_word + " *:*",
                                    "host 10.0.0.1 /" + long_word, "host " + long_word + " /x"}) {
        Config config;
        Config::Error error;
        EXPECT_FALSE(config.parse(text.data(), text.size(), &error));
    }
}

TEST(Config, ReadsAFile)
{
    Config config;
    Config::Error error;
    EXPECT_FALSE(config.load("/nothing/there", &error));
    EXPECT_EQ(error.line, 0u);
    EXPECT_STREQ(error.text, "No such file or directory");
    EXPECT_FALSE(config.load("/", &error));
    EXPECT_STREQ(error.text, "Is a directory");
    const std::string path = testing::TempDir() + "ntb-socket-config";
    std::ofstream(path) << "host 10.0.0.1 /x\n";
    EXPECT_TRUE(config.load(path.c_str(), &error)) << error.text;
    EXPECT_STREQ(config.daemon_of(at("10.0.0.1", 1)), "/x");
    std::ofstream(path) << std::string(65536, '\n');
    EXPECT_FALSE(config.load(path.c_str(), &error));
    EXPECT_STREQ(error.text, "it has 64 KiB or more");
    unlink(path.c_str());
}

} // namespace ntb::socket
