// SPDX-License-Identifier: BSD-3-Clause
// What a program writes to /dev/infiniband/rdma_cm: doc/verbs.md, section 12. The structs are the
// kernel's, which grow at their ends: a command may be shorter or longer than they are.
#ifndef NTB_VERBS_CM_COMMAND_HPP
#define NTB_VERBS_CM_COMMAND_HPP

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>

namespace ntb::verbs::cm
{

/// A command that was written whole.
class Command
{
public:
    /// @param bytes  what was written, in the program's memory
    /// @return 0; -EINVAL: shorter than a header, or than its header says
    int read(const void *bytes, std::size_t size)
    {
        if (!bytes || size < sizeof(header_))
            return -EINVAL;
        std::memcpy(&header_, bytes, sizeof(header_));
        if (header_.in > size - sizeof(header_))
            return -EINVAL;
        payload_ = static_cast<const std::byte *>(bytes) + sizeof(header_);
        return 0;
    }
    std::uint32_t number() const { return header_.cmd; }

    /// Copies the command's struct; what was not written is zero.
    /// @param least  bytes of its first version
    /// @return 0; -EINVAL: there are fewer
    template <typename T>
    int get(T &to, std::size_t least = sizeof(T)) const
    {
        if (header_.in < least)
            return -EINVAL;
        to = {};
        std::memcpy(&to, payload_, std::min<std::size_t>(header_.in, sizeof(T)));
        return 0;
    }

    /// Writes the answer, as much as there is room for.
    /// @param least  bytes of its first version
    /// @return 0; -ENOSPC: there is no room for them; -EFAULT: no place
    template <typename T>
    int answer(std::uint64_t place, const T &from, std::size_t least = sizeof(T)) const
    {
        if (header_.out < least)
            return -ENOSPC;
        if (place == 0)
            return -EFAULT;
        std::memcpy(reinterpret_cast<void *>(static_cast<std::uintptr_t>(place)), &from,
                    std::min<std::size_t>(header_.out, sizeof(T)));
        return 0;
    }

private:
    rdma_ucm_cmd_hdr header_ = {};
    const std::byte *payload_ = nullptr;
};

} // namespace ntb::verbs::cm

#endif
