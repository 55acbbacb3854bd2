// SPDX-License-Identifier: BSD-3-Clause
// Connections that are open when a process goes on as another program, or starts one
// (doc/socket-protocol.md, rules H6 and H7).
#ifndef NTB_SOCKET_PRELOAD_HANDOVER_HPP
#define NTB_SOCKET_PRELOAD_HANDOVER_HPP

#include "preload/upgrade.hpp"

#include <cstddef>

namespace ntb::socket::preload
{

/// Made before exec, for every connection whose descriptor stays open. One that is not claimed
/// the program is expected to have: a variable of its environment says where the list of holders
/// is. All others go back to TCP. It ends if exec has failed, or when a child was started.
class Handover
{
public:
    /// @param path         what exec executes; NULL: the program cannot know what it is called
    /// @param environment  for the program; may be NULL
    Handover(const char *path, char *const *environment, Unread unread = Unread::Reset);
    ~Handover();
    Handover(const Handover &) = delete;
    Handover &operator=(const Handover &) = delete;

    /// Pointers that environment() needs, 0: none. On the caller's stack: a child of vfork() leaves
    /// other memory behind with its parent.
    std::size_t room() const { return descriptor_ < 0 ? 0 : variables_ + 2; }
    char *const *environment(char **room);
    /// A child was started, and exec has not failed in it.
    void started() { place_count_ = 0; }

private:
    static constexpr int most = 16; ///< connections; of more each is expected for ever
    static constexpr std::size_t most_text = 1024;

    void look_beside_table();
    void look_at(int fd, int number);
    void pass(int fd, int place);
    void make_variable(const char *path);

    char *const *environment_;
    Unread unread_;
    std::size_t variables_ = 0;
    int places_[most];
    int numbers_[most], number_places_[most];
    int count_ = 0, place_count_ = 0;
    int descriptor_ = -1;  ///< of the family, for the program
    char text_[most_text]; ///< NAME=VALUE
};

/// What a program finds of it, which is then no longer in its environment.
class Will
{
public:
    Will();
    /// Closes the descriptor of the family, unless that was taken.
    ~Will();
    Will(const Will &) = delete;
    Will &operator=(const Will &) = delete;
    /// @return "": there is none
    const char *text() const { return text_; }
    /// The descriptor of the family, now the caller's; -1: there is none.
    int take_descriptor();

private:
    int descriptor_ = -1;
    char text_[1024];
};

/// Takes the place of the program before this one, once there is a table.
void take_inheritance(Will &will);

} // namespace ntb::socket::preload

#endif
