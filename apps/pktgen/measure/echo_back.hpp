// SPDX-License-Identifier: BSD-3-Clause
// HOT. The server of round trips: what comes is read, written to and sent back, in the mbufs
// it came in.
#ifndef PKTGEN_MEASURE_ECHO_BACK_HPP
#define PKTGEN_MEASURE_ECHO_BACK_HPP

#include "measure/work.hpp"

namespace pktgen
{

template <typename Transport>
class EchoBack final : public Work
{
public:
    EchoBack(Transport transport, const Point &point);
    ~EchoBack() override;

    void slice(unsigned steps) override;
    bool sent_all() const override { return staged_.empty(); }

private:
    void pull();

    Transport transport_;
    const uint16_t burst_;
    const bool verify_;
    Staged staged_;
};

} // namespace pktgen

#endif
