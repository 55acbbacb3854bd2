// SPDX-License-Identifier: BSD-3-Clause
// A chip of the twin is known by its capabilities where a board has put an id of its own into the
// subsystem id.
#include "hw/identify.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include <twin.hpp>
#include <unistd.h>

namespace
{

using namespace plx;

TEST(IdentifyOnTwin, ByTheVendorSpecificCapability)
{
    char path[] = "/tmp/plx-registers.XXXXXX";
    FILE *const out = fdopen(mkstemp(path), "w");
    ASSERT_NE(out, nullptr);
    fputs("# plx-registers 1 part 8749 function 0000:05:00.0\n"
          "3e02c 29548086 NT0-virtual PCI_SUBSYSTEM_ID\n",
          out);
    fclose(out);
    const std::string cable = "mem:identify-" + std::to_string(getpid());
    twin::Config config;
    config.cable = cable.c_str();
    config.state = twin::ChipState::file;
    config.state_file = path;
    twin::Error error{};
    twin::Host *host = nullptr;
    ASSERT_EQ(twin::attach(config, &host, &error), 0) << error.text;
    unlink(path);
    static const hw::RegIoOps ops = {
        [](void *ctx, uint32_t offset) {
            return twin::csr_read32(static_cast<twin::Host *>(ctx), offset);
        },
        [](void *ctx, uint32_t offset, uint32_t value) {
            twin::csr_write32(static_cast<twin::Host *>(ctx), offset, value);
        },
        [](void *ctx, uint32_t offset) {
            return twin::config_read32(static_cast<twin::Host *>(ctx), offset);
        },
        [](void *ctx, uint32_t offset, uint32_t value) {
            twin::config_write32(static_cast<twin::Host *>(ctx), offset, value);
        },
        [](void *, uint32_t) {}};
    ASSERT_EQ(twin::config_read32(host, 0x2C), 0x29548086u);
    hw::Identity id;
    hw::Refusal why;
    EXPECT_EQ(hw::identify({&ops, host}, &id, &why), 0) << why.what;
    EXPECT_EQ(id.family, facts::Family::draco2);
    EXPECT_EQ(id.part, 0x8749);
    EXPECT_EQ(id.revision, 0xBA);
    twin::detach(host);
}

} // namespace
