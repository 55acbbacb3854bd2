// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <rte_kvargs.h>

#include "log.hpp"

namespace plx::net
{

namespace
{

struct Parsed {
    const char *name;
    Options options;
    unsigned seen = 0; ///< a bit for each own key
};

int refuse(const Parsed &parsed, const char *key, const char *value, const char *expected)
{
    PLX_NET_LOG(ERR, "%s: devarg %s=%s: expected %s\n", parsed.name, key, value, expected);
    return -EINVAL;
}

int set_dev(Parsed &parsed, const char *value)
{
    const int length = snprintf(parsed.options.dev, sizeof(parsed.options.dev), "%s", value);
    return length > 0 && static_cast<size_t>(length) < sizeof(parsed.options.dev)
               ? 0
               : refuse(parsed, "dev", value, "the name of a raw_plx_ntb device");
}

int set_mac(Parsed &parsed, const char *value)
{
    return rte_ether_unformat_addr(value, &parsed.options.mac) == 0 &&
                   rte_is_valid_assigned_ether_addr(&parsed.options.mac) != 0
               ? 0
               : refuse(parsed, "mac", value, "a unicast address, such as 02:00:00:00:00:01");
}

int set_zero_copy(Parsed &parsed, const char *value)
{
    if (std::strcmp(value, "0") != 0 && std::strcmp(value, "1") != 0)
        return refuse(parsed, "zero_copy", value, "0 or 1");
    parsed.options.zero_copy = value[0] == '1';
    return 0;
}

struct Key {
    const char *name;
    int (*set)(Parsed &, const char *value);
};
constexpr Key keys[] = {{"dev", set_dev}, {"mac", set_mac}, {"zero_copy", set_zero_copy}};

/// Devargs of the rawdev that the port chooses itself.
struct Chosen {
    const char *name;
    const char *instead;
};
constexpr Chosen chosen[] = {
    {"queues", "the application, by rte_eth_dev_configure()"},
    {"rx", "zero_copy=0|1"},
    {"max_message", "the data room of the application's pools, or its scattered receiving"},
};

/// Whether a list of devargs has a key.
bool has_key(const char *args, const char *key)
{
    const size_t length = std::strlen(key);
    for (const char *at = std::strstr(args, key); at != nullptr; at = std::strstr(at + 1, key))
        if ((at == args || at[-1] == ',') && at[length] == '=')
            return true;
    return false;
}

int pass_on(Parsed &parsed, const char *key, const char *value)
{
    for (const Chosen &c : chosen)
        if (std::strcmp(c.name, key) == 0) {
            PLX_NET_LOG(ERR, "%s: devarg %s is not for a port: it is set by %s\n", parsed.name, key,
                        c.instead);
            return -EINVAL;
        }
    char *args = parsed.options.rawdev_args;
    if (has_key(args, key))
        return refuse(parsed, key, value, "this key once");
    const size_t used = std::strlen(args);
    const size_t room = sizeof(parsed.options.rawdev_args) - used;
    const int length = snprintf(args + used, room, "%s%s=%s", used > 0 ? "," : "", key, value);
    if (length < 0 || static_cast<size_t>(length) >= room) {
        PLX_NET_LOG(ERR, "%s: devargs of more than %zu bytes\n", parsed.name,
                    sizeof(parsed.options.rawdev_args) - 1);
        return -EINVAL;
    }
    return 0;
}

int on_pair(const char *key, const char *given, void *opaque)
{
    auto &parsed = *static_cast<Parsed *>(opaque);
    const char *value = given != nullptr ? given : "";
    for (unsigned i = 0; i < std::size(keys); ++i) {
        if (std::strcmp(keys[i].name, key) != 0)
            continue;
        if ((parsed.seen & 1u << i) != 0)
            return refuse(parsed, key, value, "this key once");
        parsed.seen |= 1u << i;
        return keys[i].set(parsed, value);
    }
    return pass_on(parsed, key, value);
}

} // namespace

int parse_options(const char *name, const char *args, Options *options)
{
    Parsed parsed{.name = name, .options = {}};
    if (args != nullptr && args[0] != '\0') {
        const std::unique_ptr<rte_kvargs, void (*)(rte_kvargs *)> list(
            rte_kvargs_parse(args, nullptr), rte_kvargs_free);
        if (list == nullptr) {
            PLX_NET_LOG(ERR, "%s: devargs \"%s\": expected key=value[,key=value...]\n", name, args);
            return -EINVAL;
        }
        if (const int rc = rte_kvargs_process(list.get(), nullptr, on_pair, &parsed); rc != 0)
            return -EINVAL;
    }
    if (parsed.options.dev[0] != '\0' && parsed.options.rawdev_args[0] != '\0') {
        PLX_NET_LOG(ERR, "%s: dev=%s exists and takes no devargs: not \"%s\"\n", name,
                    parsed.options.dev, parsed.options.rawdev_args);
        return -EINVAL;
    }
    if (parsed.options.dev[0] == '\0' && parsed.options.rawdev_args[0] == '\0') {
        PLX_NET_LOG(ERR, "%s: expected cable=<socket path> or dev=<rawdev>\n", name);
        return -EINVAL;
    }
    *options = parsed.options;
    return 0;
}

} // namespace plx::net
