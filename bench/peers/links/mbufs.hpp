// SPDX-License-Identifier: BSD-3-Clause
// What our queue pairs and channels and the ethdev ports have in common.
#ifndef BENCH_PEERS_LINKS_MBUFS_HPP
#define BENCH_PEERS_LINKS_MBUFS_HPP

#include "mbufs/mbuf_link.hpp"
#include "peers/pair/command_line.hpp"

#include <memory>
#include <string>
#include <vector>

#include <rte_eal.h>
#include <rte_mempool.h>

namespace peers
{

/// What one mbuf holds: larger messages travel as chains.
inline constexpr uint16_t small_room = 2048;
inline constexpr uint16_t large_room = 8192;

/// EAL with the words behind "--", which are whatever the peer needs.
inline bool start_eal(const std::vector<std::string> &words, std::string &error)
{
    std::vector<std::string> copies{"peer"};
    copies.insert(copies.end(), words.begin(), words.end());
    std::vector<char *> arguments;
    for (std::string &word : copies)
        arguments.push_back(word.data());
    if (rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) >= 0)
        return true;
    error = "EAL does not start";
    return false;
}

template <typename Owner>
struct Owned {
    std::unique_ptr<Owner> m_owner;
};

/// The link over Owner::way(). What the way stands on outlives its messages.
template <typename Owner>
class OwningLink : Owned<Owner>, public bench::MbufLink<typename Owner::Way, bench::VariableSize>
{
public:
    static constexpr bool server_leaves_last = Owner::server_leaves_last;

    static std::unique_ptr<OwningLink> open(const Options &options, std::string &error)
    {
        auto owner = std::make_unique<Owner>();
        if (!owner->open(options, error))
            return nullptr;
        return std::make_unique<OwningLink>(std::move(owner));
    }

    explicit OwningLink(std::unique_ptr<Owner> owner)
        : Owned<Owner>{std::move(owner)}, bench::MbufLink<typename Owner::Way, bench::VariableSize>(
                                              this->m_owner->way(),
                                              bench::VariableSize(this->m_owner->room()))
    {
    }

    size_t max_message() const { return this->m_owner->max_message(); }
};

} // namespace peers

#endif
