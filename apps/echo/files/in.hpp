// SPDX-License-Identifier: BSD-3-Clause
// A file that comes from the peer, from its offer to its place in the folder.
#ifndef ECHO_FILES_IN_HPP
#define ECHO_FILES_IN_HPP

#include <cstdint>
#include <string>

#include "files/wire.hpp"

struct rte_mbuf;

namespace echo::file
{

/// Makes @p name, and the folders on its way, below @p root. @return 0 or errno
int make_folder(int root, const std::string &name);

/// Bytes go into a partial file beside their place, which an interrupted transfer leaves behind and
/// the next offer of the same file goes on with. Only a file whose length and CRC are right takes
/// its place. No step follows a symbolic link below the root. Errors are errno.
class In
{
public:
    In() = default;
    ~In() { close(); }
    In(const In &) = delete;
    In &operator=(const In &) = delete;

    /// Begins. What is there of the file, or of its partial file, has to be read next.
    /// @param root   descriptor of the folder
    /// @param offer  name_is_safe()
    int open(int root, const Message &offer);
    /// Reads on in what is there. @return true: there is more to be read
    bool read_some(int &error);

    bool is_open() const { return fd_ >= 0; }
    bool reading() const { return is_open() && have_ < there_; }
    bool written() const { return written_; } ///< data of this transfer
    /// Another offer of the file that is open.
    bool is_same(const Message &offer) const;
    void rename(uint64_t transfer) { offer_.transfer = transfer; }

    const Message &offer() const { return offer_; }
    uint64_t have() const { return have_; } ///< bytes
    uint32_t crc() const { return crc_; }   ///< of them

    /// Takes the bytes of @p data, which lie behind the header in @p message.
    int write(const Message &data, const rte_mbuf *message);
    /// Puts the file into its place, if it is what @p end says; else the partial file goes.
    int finish(const Message &end);
    /// Leaves the partial file for another time.
    void close();

private:
    int open_part();
    int restart();

    Message offer_{};
    std::string leaf_, part_;
    int parent_ = -1;
    int fd_ = -1;
    bool in_place_ = false; ///< the file itself is open, it has the right size and time
    bool written_ = false;  ///< in this transfer: it cannot be started over any more
    uint64_t there_ = 0;    ///< bytes that were found
    uint64_t have_ = 0;
    uint32_t crc_ = 0;
};

} // namespace echo::file

#endif
