// SPDX-License-Identifier: BSD-3-Clause
#include "mac.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>

#include <rte_eal.h>
#include <rte_jhash.h>

#include <unistd.h>

namespace plx::net
{

namespace
{

constexpr size_t identity_max = 512;

/// The machine's id (machine-id(5)), or an empty text.
void read_machine_id(char *out, size_t bytes)
{
    out[0] = '\0';
    FILE *file = std::fopen("/etc/machine-id", "re");
    if (file == nullptr)
        return;
    if (std::fgets(out, static_cast<int>(bytes), file) == nullptr)
        out[0] = '\0';
    std::fclose(file);
    out[std::strcspn(out, "\n")] = '\0';
}

} // namespace

rte_ether_addr mac_of(const char *identity)
{
    // Whole words: the hash of bytes reads beyond them.
    uint32_t words[identity_max / sizeof(uint32_t)] = {};
    const size_t bytes = strnlen(identity, sizeof(words));
    std::memcpy(words, identity, bytes);
    uint32_t low = 0;
    uint32_t high = 0;
    rte_jhash_32b_2hashes(words, std::size(words), &low, &high);
    rte_ether_addr mac{};
    std::memcpy(mac.addr_bytes, &low, sizeof(low));
    std::memcpy(mac.addr_bytes + sizeof(low), &high, sizeof(mac.addr_bytes) - sizeof(low));
    mac.addr_bytes[0] &= static_cast<uint8_t>(~RTE_ETHER_GROUP_ADDR);
    mac.addr_bytes[0] |= RTE_ETHER_LOCAL_ADMIN_ADDR;
    return mac;
}

rte_ether_addr make_mac(const char *name)
{
    char machine[64];
    read_machine_id(machine, sizeof(machine));
    char host[65] = "";
    gethostname(host, sizeof(host) - 1);
    char identity[identity_max];
    std::snprintf(identity, sizeof(identity), "%s %s %s %s", machine, host,
                  rte_eal_get_runtime_dir(), name);
    return mac_of(identity);
}

} // namespace plx::net
