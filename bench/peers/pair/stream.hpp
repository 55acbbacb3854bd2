// SPDX-License-Identifier: BSD-3-Clause
// Messages of a known length in a stream of bytes, polled.
#ifndef BENCH_PEERS_PAIR_STREAM_HPP
#define BENCH_PEERS_PAIR_STREAM_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <sys/types.h>
#include <vector>

#include "peers/pair/payload.hpp"

namespace peers
{

/// @tparam Stream the class derived from it, which moves bytes without waiting:
///   ssize_t put(const std::byte *, size_t) and ssize_t take(std::byte *, size_t) return how many,
///   -EAGAIN where they would wait, or another negative errno; take() 0 at the end.
template <class Stream>
class StreamLink : public PayloadLink
{
public:
    int send(uint64_t value, unsigned n, uint64_t give_up)
    {
        for (unsigned i = 0; i < n; i++) {
            write_payload(m_out.data(), m_bytes, value + i);
            if (const int error = send_all(give_up); error != 0)
                return error;
        }
        return 0;
    }
    int receive(unsigned n, uint64_t &sum)
    {
        int got = 0;
        while (static_cast<unsigned>(got) < n) {
            const ssize_t done = self().take(m_in.data() + m_read, m_bytes - m_read);
            if (done == -EAGAIN)
                break;
            if (done <= 0)
                return done < 0 ? static_cast<int>(done) : -ECONNRESET;
            m_read += static_cast<size_t>(done);
            if (m_read < m_bytes)
                continue;
            sum += read_payload(m_in.data(), m_bytes);
            m_read = 0;
            got++;
        }
        return got;
    }

protected:
    explicit StreamLink(size_t longest) : m_out(longest), m_in(longest) {}

private:
    Stream &self() { return static_cast<Stream &>(*this); }
    int send_all(uint64_t give_up)
    {
        for (size_t at = 0; at < m_bytes;) {
            const ssize_t done = self().put(m_out.data() + at, m_bytes - at);
            if (done < 0 && done != -EAGAIN)
                return static_cast<int>(-done);
            if (done < 0 && monotonic_ns() > give_up)
                return ETIMEDOUT;
            at += done > 0 ? static_cast<size_t>(done) : 0;
        }
        return 0;
    }

    std::vector<std::byte> m_out;
    std::vector<std::byte> m_in;
    size_t m_read = 0; ///< bytes in m_in that are not yet taken
};

} // namespace peers

#endif
