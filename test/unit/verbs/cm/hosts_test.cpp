// SPDX-License-Identifier: BSD-3-Clause
#include "cm/hosts.hpp"

#include "fakes.hpp"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace ntb::verbs::cm;
using ntb::verbs::cm::test::address;

namespace
{

class CmHosts : public testing::Test
{
protected:
    void SetUp() override { ::close(mkstemp(path)); }
    void TearDown() override { unlink(path); }

    void write(const char *text)
    {
        FILE *const file = fopen(path, "w");
        ASSERT_NE(file, nullptr);
        fputs(text, file);
        fclose(file);
    }

    char path[32] = "/tmp/ntb-verbs-hosts-XXXXXX";
    Hosts hosts{"/run/ntb0.sock", 1, 2};
};

TEST_F(CmHosts, PeersAreThoseOfTheMapAndOfThisDevice)
{
    EXPECT_EQ(hosts.check_peer(address("10.0.0.2", 1)), -EHOSTUNREACH) << "no map";
    write("# sockets\nspin 10\nhost 10.0.0.0/24 /run/ntb0.sock\nhost fd00::2 /run/ntb0.sock\n"
          "host 10.0.1.2 /run/ntb1.sock\n");
    EXPECT_EQ(hosts.load(path), "");
    EXPECT_EQ(hosts.check_peer(address("10.0.0.2", 1)), 0);
    EXPECT_EQ(hosts.check_peer(address("fd00::2", 1)), 0);
    testing::internal::CaptureStderr();
    EXPECT_EQ(hosts.check_peer(address("10.0.1.2", 1)), -EHOSTUNREACH);
    EXPECT_EQ(hosts.check_peer(address("fd00::3", 1)), -EHOSTUNREACH);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("10.0.1.2 at /run/ntb1.sock"), std::string::npos) << said;
    EXPECT_NE(said.find("fd00::3 is in no 'host' line of the map " + std::string(path)),
              std::string::npos)
        << said;
}

TEST_F(CmHosts, AMapThatIsWrongIsNamedWithItsLine)
{
    write("host 10.0.0.2 /run/ntb0.sock\nhost nonsense\n");
    EXPECT_EQ(hosts.load(path).find(std::string(path) + ":2: "), 0u) << hosts.load(path);
    unlink(path);
    EXPECT_EQ(hosts.load(path), std::string(path) + ": No such file or directory");
}

TEST_F(CmHosts, OwnAddressesAreTheMachines)
{
    EXPECT_TRUE(hosts.is_own(address("127.0.0.1", 1)));
    EXPECT_TRUE(hosts.is_own(address("127.0.0.2", 1)));
    EXPECT_FALSE(hosts.is_own(address("0.0.0.0", 1)));
    EXPECT_FALSE(hosts.is_own(address("::", 1)));
    EXPECT_FALSE(hosts.is_own(address("192.0.2.1", 1))) << "kept for documents";
    const Address source = hosts.source_for(address("127.0.0.1", 1));
    EXPECT_TRUE(is_same_host(source, address("127.0.0.1", 0)));
}

} // namespace
