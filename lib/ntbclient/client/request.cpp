// SPDX-License-Identifier: BSD-3-Clause
// What a program asks for by name, as a request to the daemon.
#include "client/client.hpp"
#include "sized.hpp"

#include <cerrno>
#include <cstring>

namespace ntbc
{

namespace
{
constexpr uint32_t backlog_max = 1024;
constexpr uint32_t backlog_default = 64;
constexpr uint32_t timeout_max_ms = 3600000;
constexpr uint32_t timeout_default_ms = 5000;
constexpr uint32_t key_of_name = 0;
} // namespace

int name_request(const char *name, const ntbclient_options *options, Message *request)
{
    ntbclient_options chosen = {};
    if (name == nullptr)
        return -EINVAL;
    if (options != nullptr)
        if (const int wrong = ntb::read_sized(*options, sizeof(chosen), chosen); wrong != 0)
            return wrong;
    const size_t bytes = strnlen(name, NTBCLIENT_MAX_NAME + 1);
    if (bytes == 0 || bytes > NTBCLIENT_MAX_NAME || chosen.local > 1 || chosen.once > 1 ||
        chosen.wait > 1 || chosen.backlog > backlog_max || chosen.timeout_ms > timeout_max_ms)
        return -EINVAL;
    request->flags = (chosen.local != 0 ? flag_local : 0) | (chosen.once != 0 ? flag_once : 0) |
                     (chosen.wait != 0 ? flag_wait : 0);
    request->backlog = chosen.backlog != 0 ? chosen.backlog : backlog_default;
    request->timeout_ms = chosen.timeout_ms != 0 ? chosen.timeout_ms : timeout_default_ms;
    request->key_kind = key_of_name;
    request->key_bytes = static_cast<uint32_t>(bytes);
    memcpy(request->key, name, bytes);
    return 0;
}

} // namespace ntbc
