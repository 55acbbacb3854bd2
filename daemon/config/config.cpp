// SPDX-License-Identifier: BSD-3-Clause
#include "config/config.hpp"

#include "ring/layout.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <pwd.h>
#include <set>
#include <sstream>
#include <sys/un.h>

namespace ntbd
{

namespace
{
using Words = std::vector<std::string>;

constexpr const char *keywords = "socket, mode, device, eal, carrier, user, ring, allow, quota";

Words split(const std::string &line)
{
    Words words;
    std::istringstream stream(line.substr(0, line.find('#')));
    for (std::string word; stream >> word;)
        words.push_back(word);
    return words;
}

// With a suffix K, M or G, of 1024.
std::optional<uint64_t> number(const std::string &word, int base = 10)
{
    uint64_t value = 0;
    const char *end = word.data() + word.size();
    const auto [rest, failure] = std::from_chars(word.data(), end, value, base);
    if (failure != std::errc{} || rest == word.data())
        return {};
    if (rest == end)
        return value;
    const size_t power = std::string("KMG").find(*rest);
    const unsigned shift = 10 * (static_cast<unsigned>(power) + 1);
    if (base != 10 || rest + 1 != end || power == std::string::npos || value >> (64 - shift) != 0)
        return {};
    return value << shift;
}

struct User {
    uid_t uid;
    gid_t gid;
};

// A name, or a number that need not be in the user database.
std::optional<User> user_of(const std::string &word)
{
    if (const passwd *entry = getpwnam(word.c_str()); entry != nullptr)
        return User{entry->pw_uid, entry->pw_gid};
    const auto uid = number(word);
    if (!uid || *uid >= std::numeric_limits<uid_t>::max())
        return {};
    const passwd *entry = getpwuid(static_cast<uid_t>(*uid));
    return User{static_cast<uid_t>(*uid),
                entry != nullptr ? entry->pw_gid : static_cast<gid_t>(*uid)};
}

class Parser
{
public:
    explicit Parser(Config *out) : config_(*out) {}

    // Each returns what is wrong; empty: nothing.
    std::string line(const Words &words);
    std::string end() const
    {
        if (config_.socket.empty())
            return "a line 'socket PATH' is expected";
        if (!config_.eal.empty() && config_.device.empty())
            return "'eal' needs a line 'device NAME'";
        return "";
    }

private:
    std::string socket(const std::string &path);
    std::string mode(const std::string &word);
    std::string carrier(const std::string &word);
    std::string user(const std::string &word);
    std::string ring(const std::string &word);
    std::string allow(const Words &words);
    std::string quota(const Words &words);

    Config &config_;
    std::set<std::string> seen_;
};

std::string Parser::socket(const std::string &path)
{
    if (path[0] != '/' || path.size() >= sizeof(sockaddr_un::sun_path))
        return "'" + path + "' is no absolute path of at most " +
               std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes";
    config_.socket = path;
    return "";
}

std::string Parser::mode(const std::string &word)
{
    const auto value = number(word, 8);
    if (!value || *value > 0777)
        return "'" + word + "' is no octal mode up to 0777";
    config_.mode = static_cast<mode_t>(*value);
    return "";
}

std::string Parser::carrier(const std::string &word)
{
    if (word != "auto" && word != "direct" && word != "daemon")
        return "'" + word + "' is none of auto, direct, daemon";
    config_.carrier = word == "auto"     ? CarrierChoice::automatic
                      : word == "direct" ? CarrierChoice::direct
                                         : CarrierChoice::daemon;
    return "";
}

std::string Parser::user(const std::string &word)
{
    const auto found = user_of(word);
    if (!found)
        return "there is no user '" + word + "'";
    config_.user = found->uid;
    config_.group = found->gid;
    return "";
}

std::string Parser::ring(const std::string &word)
{
    const auto value = number(word);
    if (!value || *value > ntbc::ring_bytes_max ||
        !ntbc::is_ring_size(static_cast<uint32_t>(*value)))
        return "'" + word + "' is no power of two from " + std::to_string(ntbc::ring_bytes_min) +
               " to " + std::to_string(ntbc::ring_bytes_max);
    config_.ring_bytes = static_cast<uint32_t>(*value);
    return "";
}

std::string Parser::allow(const Words &words)
{
    if (words.size() < 2)
        return "'allow USER...' is expected";
    if (!config_.allowed)
        config_.allowed.emplace();
    for (size_t i = 1; i < words.size(); i++) {
        const auto found = user_of(words[i]);
        if (!found)
            return "there is no user '" + words[i] + "'";
        config_.allowed->push_back(found->uid);
    }
    return "";
}

std::string Parser::quota(const Words &words)
{
    constexpr const char *form =
        "'quota default|USER [clients N] [listeners N] [connections N] [bytes N] "
        "[segments N]' is expected";
    if (words.size() < 4 || words.size() % 2 != 0)
        return form;
    const auto found = user_of(words[1]);
    if (words[1] != "default" && !found)
        return "there is no user '" + words[1] + "'";
    // A user's quota begins with the default as it is known at its line.
    Quota &quota = words[1] == "default"
                       ? config_.quota
                       : config_.quotas.try_emplace(found->uid, config_.quota).first->second;
    std::set<std::string> seen;
    for (size_t i = 2; i < words.size(); i += 2) {
        const auto value = number(words[i + 1]);
        uint32_t *const count = words[i] == "clients"       ? &quota.clients
                                : words[i] == "listeners"   ? &quota.listeners
                                : words[i] == "connections" ? &quota.connections
                                : words[i] == "segments"    ? &quota.segments
                                                            : nullptr;
        if (count == nullptr && words[i] != "bytes")
            return form;
        if (!seen.insert(words[i]).second)
            return "'" + words[i] + "' twice in one line";
        if (!value || (count != nullptr && *value > 1000000))
            return "'" + words[i + 1] + "' is no number" +
                   (count != nullptr ? " up to 1000000" : "");
        if (count != nullptr)
            *count = static_cast<uint32_t>(*value);
        else
            quota.bytes = *value;
    }
    return "";
}

std::string Parser::line(const Words &words)
{
    const std::string &word = words[0];
    if (word == "allow")
        return allow(words);
    if (word == "quota")
        return quota(words);
    if (word == "eal") {
        config_.eal.insert(config_.eal.end(), words.begin() + 1, words.end());
        return words.size() > 1 ? "" : "'eal ARGUMENT...' is expected";
    }
    const std::set<std::string> once = {"socket", "mode", "device", "carrier", "user", "ring"};
    if (once.count(word) == 0)
        return "'" + word + "' is none of " + keywords;
    if (words.size() != 2)
        return "'" + word + "' is expected with one word behind it";
    if (!seen_.insert(word).second)
        return "a second line '" + word + "'";
    if (word == "device")
        config_.device = words[1];
    return word == "socket"    ? socket(words[1])
           : word == "mode"    ? mode(words[1])
           : word == "user"    ? user(words[1])
           : word == "carrier" ? carrier(words[1])
           : word == "ring"    ? ring(words[1])
                               : "";
}
} // namespace

const Quota &Config::quota_of(uid_t uid) const
{
    const auto found = quotas.find(uid);
    return found != quotas.end() ? found->second : quota;
}

bool Config::allows(uid_t uid) const
{
    return !allowed || std::find(allowed->begin(), allowed->end(), uid) != allowed->end();
}

bool parse_config(const std::string &text, const std::string &path, Config *out, std::string *error)
{
    Config config;
    Parser parser(&config);
    std::istringstream lines(text);
    size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
        number++;
        const Words words = split(line);
        std::string wrong;
        if (line.find('\0') != std::string::npos)
            wrong = "a NUL byte"; // the system would take a path up to it
        else if (!words.empty())
            wrong = parser.line(words);
        if (!wrong.empty()) {
            *error = path + ":" + std::to_string(number) + ": " + wrong;
            return false;
        }
    }
    if (const std::string wrong = parser.end(); !wrong.empty()) {
        *error = path + ":" + std::to_string(number) + ": " + wrong;
        return false;
    }
    *out = config;
    return true;
}

bool read_config(const std::string &path, Config *out, std::string *error)
{
    const std::unique_ptr<FILE, int (*)(FILE *)> file(fopen(path.c_str(), "re"), fclose);
    std::string text;
    char part[4096];
    for (size_t n; file && (n = fread(part, 1, sizeof(part), file.get())) > 0;)
        text.append(part, n);
    if (!file || ferror(file.get())) {
        *error = path + ": " + strerrordesc_np(errno);
        return false;
    }
    return parse_config(text, path, out, error);
}

std::string fixed_changes(const Config &now, const Config &next)
{
    std::string changes;
    const auto note = [&changes](bool same, const char *word) {
        if (!same)
            changes += std::string(changes.empty() ? "" : ", ") + word;
    };
    note(now.socket == next.socket, "socket");
    note(now.mode == next.mode, "mode");
    note(now.device == next.device, "device");
    note(now.eal == next.eal, "eal");
    note(now.carrier == next.carrier, "carrier");
    note(now.user == next.user && now.group == next.group, "user");
    return changes;
}

} // namespace ntbd
