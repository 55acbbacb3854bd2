// SPDX-License-Identifier: BSD-3-Clause
#include "server/introduction.hpp"

#include <cstring>
#include <fstream>
#include <functional>
#include <ntbclient.h>
#include <sys/random.h>

namespace ntbd
{

namespace
{
// "01234567-89ab-..." as 16 bytes.
bool read_machine(MachineId *out)
{
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string digits;
    for (char c; file.get(c) && c != '\n';)
        if (c != '-')
            digits += c;
    if (digits.size() != 2 * out->size() ||
        digits.find_first_not_of("0123456789abcdef") != std::string::npos)
        return false;
    for (size_t i = 0; i < out->size(); i++)
        (*out)[i] = static_cast<uint8_t>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
    return true;
}
} // namespace

bool introduction_of(const void *message, size_t bytes, Peer *out)
{
    Introduction in;
    if (bytes != sizeof(in))
        return false;
    memcpy(&in, message, sizeof(in));
    if (in.magic != introduction_magic || in.version != introduction_version ||
        memchr(in.path, 0, sizeof(in.path)) == nullptr ||
        in.carrier > static_cast<uint32_t>(CarrierChoice::daemon) || in.host == 0 ||
        in.host > NTBCLIENT_MAX_HOST)
        return false;
    *out = {in.machine, in.token, in.path, static_cast<CarrierChoice>(in.carrier),
            static_cast<uint16_t>(in.host)};
    return true;
}

bool introduce_self(const std::string &path, CarrierChoice carrier, Introduction *out)
{
    *out = {};
    if (path.size() >= sizeof(out->path) || !read_machine(&out->machine))
        return false;
    path.copy(out->path, path.size());
    out->carrier = static_cast<uint32_t>(carrier);
    out->host = host_number(path);
    return getrandom(out->token.data(), out->token.size(), 0) ==
           static_cast<ssize_t>(out->token.size());
}

std::optional<Carriage> agree(const Introduction &own, const Peer &peer)
{
    const auto is_wanted = [&](CarrierChoice choice) {
        return own.carrier == static_cast<uint32_t>(choice) || peer.carrier == choice;
    };
    const bool is_one_machine = own.machine == peer.machine;
    if (!is_wanted(CarrierChoice::daemon) && is_one_machine)
        return Carriage::direct;
    if (is_wanted(CarrierChoice::direct))
        return {};
    return Carriage::daemon;
}

uint16_t host_number(const std::string &path)
{
    MachineId machine = {};
    read_machine(&machine);
    const std::string whole = std::string(machine.begin(), machine.end()) + path;
    return static_cast<uint16_t>(1 + std::hash<std::string>{}(whole) % NTBCLIENT_MAX_HOST);
}

bool is_same_token(const uint8_t *one, const Token &other)
{
    uint8_t difference = 0;
    for (size_t i = 0; i < other.size(); i++)
        difference = static_cast<uint8_t>(difference | (one[i] ^ other[i]));
    return difference == 0;
}

} // namespace ntbd
