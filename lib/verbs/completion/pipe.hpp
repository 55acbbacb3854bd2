// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_COMPLETION_PIPE_HPP
#define NTB_VERBS_COMPLETION_PIPE_HPP

#include <cstdint>

namespace ntb::verbs
{

/// Records of a fixed size that a program reads from a descriptor. A pipe and no eventfd, as the
/// record says what has happened.
class Pipe
{
public:
    Pipe() = default;
    ~Pipe();
    Pipe(const Pipe &) = delete;
    Pipe &operator=(const Pipe &) = delete;

    /// @return 0 or a negative errno
    int create();
    /// What the program reads from and may set to O_NONBLOCK.
    int descriptor() const { return ends_[0]; }
    /// Never waits. @retval false the pipe is full
    bool write(const void *record, std::uint32_t bytes);

private:
    int ends_[2] = {-1, -1};
};

} // namespace ntb::verbs

#endif
