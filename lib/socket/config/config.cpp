// SPDX-License-Identifier: BSD-3-Clause
#include "config/config.hpp"

#include "kernel/system.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fnmatch.h>
#include <netinet/in.h>
#include <optional>
#include <string_view>

namespace ntb::socket
{

namespace
{
using std::string_view;

constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

std::optional<unsigned> number(string_view word, unsigned most)
{
    unsigned value = 0;
    const auto [rest, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc{} || rest != word.data() + word.size() || value > most)
        return {};
    return value;
}

// ADDR[/len] of either family.
bool prefix_of(string_view word, Prefix *out)
{
    const std::size_t slash = word.find('/');
    const string_view name = word.substr(0, slash);
    char copy[INET6_ADDRSTRLEN] = {};
    if (name.size() >= sizeof(copy))
        return false;
    name.copy(copy, name.size());
    in_addr four;
    in6_addr six;
    unsigned before = 0;
    if (inet_pton(AF_INET, copy, &four) == 1) {
        before = 96;
        memcpy(out->bytes, mapped, sizeof(mapped));
        memcpy(out->bytes + sizeof(mapped), &four, sizeof(four));
    } else if (inet_pton(AF_INET6, copy, &six) == 1) {
        memcpy(out->bytes, &six, sizeof(six));
    } else {
        return false;
    }
    out->length = 128;
    if (slash == string_view::npos)
        return true;
    const auto length = number(word.substr(slash + 1), 128 - before);
    if (!length)
        return false;
    out->length = before + *length;
    return true;
}

// * | ADDR[/len] | [ADDR[/len]], in brackets for IPv6; then :PORT, :FIRST-LAST or :*.
bool place_of(string_view word, Prefix *prefix, std::uint16_t *first, std::uint16_t *last)
{
    const std::size_t colon = word.rfind(':');
    if (colon == string_view::npos)
        return false;
    string_view address = word.substr(0, colon);
    const string_view ports = word.substr(colon + 1);
    if (address.starts_with('[') && address.ends_with(']'))
        address = address.substr(1, address.size() - 2);
    else if (address.find(':') != string_view::npos)
        return false;
    if (address == "*")
        *prefix = {};
    else if (!prefix_of(address, prefix))
        return false;
    const std::size_t dash = ports.find('-');
    const auto from = ports == "*" ? 0 : number(ports.substr(0, dash), 65535);
    const auto to = ports == "*"                ? 65535
                    : dash == string_view::npos ? from
                                                : number(ports.substr(dash + 1), 65535);
    if (!from || !to || *from > *to)
        return false;
    *first = static_cast<std::uint16_t>(*from);
    *last = static_cast<std::uint16_t>(*to);
    return true;
}
} // namespace

bool Address::of(const sockaddr *from, socklen_t length, Address *out)
{
    if (from == nullptr || length < sizeof(sa_family_t))
        return false;
    if (from->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
        sockaddr_in four;
        memcpy(&four, from, sizeof(four));
        memcpy(out->bytes, mapped, sizeof(mapped));
        memcpy(out->bytes + sizeof(mapped), &four.sin_addr, sizeof(four.sin_addr));
        out->port = ntohs(four.sin_port);
        return true;
    }
    if (from->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
        sockaddr_in6 six;
        memcpy(&six, from, sizeof(six));
        memcpy(out->bytes, &six.sin6_addr, sizeof(six.sin6_addr));
        out->port = ntohs(six.sin6_port);
        return true;
    }
    return false;
}

bool Prefix::has(const Address &address) const
{
    const unsigned whole = length / 8, rest = length % 8;
    if (memcmp(bytes, address.bytes, whole) != 0)
        return false;
    return rest == 0 || ((bytes[whole] ^ address.bytes[whole]) >> (8 - rest)) == 0;
}

// The words of a line that are left, and what is wrong with it.
struct Config::Line {
    string_view rest;
    Error *error;

    string_view word()
    {
        const std::size_t begin = rest.find_first_not_of(" \t\r");
        if (begin == string_view::npos) {
            rest = {};
            return {};
        }
        const std::size_t end = rest.find_first_of(" \t\r", begin);
        const string_view found = rest.substr(begin, end - begin);
        rest = end == string_view::npos ? string_view{} : rest.substr(end);
        return found;
    }
    bool wrong(string_view word, const char *expected)
    {
        snprintf(error->text, sizeof(error->text), "'%.*s' is no %s",
                 static_cast<int>(word.size() < 64 ? word.size() : 64), word.data(), expected);
        return false;
    }
    bool wrong(const char *text)
    {
        snprintf(error->text, sizeof(error->text), "%s", text);
        return false;
    }
    bool end()
    {
        const string_view more = word();
        return more.empty() || wrong(more, "part of this line: it ends before");
    }
};

bool Config::use(Line &line)
{
    constexpr const char *whole =
        "expected: use ntb|tcp|both connect|accept|inherit|late|* PROGRAM ADDRESS:PORT";
    if (rule_count_ == max_rules)
        return line.wrong("more than 64 lines 'use'");
    Rule &rule = rules_[rule_count_];
    const string_view way = line.word(), role = line.word(), program = line.word(),
                      place = line.word();
    if (place.empty())
        return line.wrong(whole);
    // Whatever may go over the bridge falls back to TCP, so 'both' is what 'ntb' is.
    rule.ntb = way == "ntb" || way == "both";
    if (!rule.ntb && way != "tcp")
        return line.wrong(way, "way: ntb, tcp or both");
    rule.connect = role == "connect" || role == "*";
    rule.accept = role == "accept" || role == "*";
    // Not part of *: programs that use stdio on such a connection would break it.
    rule.inherit = role == "inherit";
    rule.late = role == "late";
    if (!rule.connect && !rule.accept && !rule.inherit && !rule.late)
        return line.wrong(role, "role: connect, accept, inherit, late or *");
    if (program.size() >= max_name || program.find('/') != string_view::npos)
        return line.wrong(program, "program's name of at most 31 bytes without a folder");
    program.copy(rule.program, program.size());
    if (!place_of(place, &rule.prefix, &rule.first, &rule.last))
        return line.wrong(place, "place: *:*, 10.0.0.0/8:6379, [fd00::/64]:8000-8100");
    rule_count_++;
    return line.end();
}

bool Config::host(Line &line)
{
    if (host_count_ == max_hosts)
        return line.wrong("more than 64 lines 'host'");
    Host &host = hosts_[host_count_];
    const string_view address = line.word(), path = line.word();
    if (path.empty())
        return line.wrong("expected: host ADDRESS[/LENGTH] SOCKET");
    if (!prefix_of(address, &host.prefix))
        return line.wrong(address, "address, or address/length");
    if (path[0] != '/' || path.size() >= max_path)
        return line.wrong(path, "absolute path of at most 107 bytes");
    path.copy(host.socket, path.size());
    host_count_++;
    return line.end();
}

bool Config::spin(Line &line)
{
    const string_view word = line.word();
    const auto value = number(word, max_spin_us);
    if (!value)
        return line.wrong(word, "number of microseconds up to 1000");
    spin_us_ = *value;
    return line.end();
}

bool Config::parse(const char *text, std::size_t size, Error *error)
{
    *this = Config();
    *error = {};
    string_view rest(text, size);
    while (!rest.empty()) {
        error->line++;
        const std::size_t end = rest.find('\n');
        string_view one = rest.substr(0, end);
        rest = end == string_view::npos ? string_view{} : rest.substr(end + 1);
        Line line{one.substr(0, one.find('#')), error};
        const string_view keyword = line.word();
        const bool right = keyword.empty()     ? true
                           : keyword == "use"  ? use(line)
                           : keyword == "host" ? host(line)
                           : keyword == "spin" ? spin(line)
                                               : line.wrong(keyword, "keyword: use, host, spin");
        if (!right)
            return false;
    }
    return true;
}

bool Config::load(const char *path, Error *error)
{
    *error = {};
    char text[65536];
    std::size_t size = 0;
    const long file = kernel::call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    long got = file;
    while (got >= 0 && size < sizeof(text)) {
        got = kernel::call(SYS_read, file, text + size, sizeof(text) - size);
        if (got == 0)
            break;
        if (got > 0)
            size += static_cast<std::size_t>(got);
        else if (got == -EINTR)
            got = 0;
    }
    if (file >= 0)
        kernel::call(SYS_close, file);
    if (got < 0) {
        snprintf(error->text, sizeof(error->text), "%s", strerrordesc_np(static_cast<int>(-got)));
        return false;
    }
    if (size == sizeof(text)) {
        snprintf(error->text, sizeof(error->text), "it has 64 KiB or more");
        return false;
    }
    return parse(text, size, error);
}

bool Config::wanted(Role role, const char *program, const Address &address) const
{
    for (unsigned i = 0; i < rule_count_; i++) {
        const Rule &rule = rules_[i];
        const bool has_role = role == Role::Connect   ? rule.connect
                              : role == Role::Accept  ? rule.accept
                              : role == Role::Inherit ? rule.inherit
                                                      : rule.late;
        if (has_role && address.port >= rule.first && address.port <= rule.last &&
            rule.prefix.has(address) && fnmatch(rule.program, program, 0) == 0)
            return rule.ntb;
    }
    return false;
}

bool Config::names(const char *program) const
{
    return std::any_of(rules_, rules_ + rule_count_, [program](const Rule &rule) {
        return rule.ntb && fnmatch(rule.program, program, 0) == 0;
    });
}

const char *Config::daemon_of(const Address &peer) const
{
    for (unsigned i = 0; i < host_count_; i++)
        if (hosts_[i].prefix.has(peer))
            return hosts_[i].socket;
    return nullptr;
}

} // namespace ntb::socket
