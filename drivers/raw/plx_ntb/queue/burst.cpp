// SPDX-License-Identifier: BSD-3-Clause
// The hot path, compiled once for each instruction set with PLX_VARIANT set to its name.
#include "queue/consumer.hpp"
#include "queue/engine_producer.hpp"
#include "queue/in_place.hpp"
#include "queue/variants.hpp"

#define PLX_TEXT_OF(x) #x
#define PLX_TEXT(x) PLX_TEXT_OF(x)

namespace plx::queue::PLX_VARIANT
{

const Ops plain_ops{"plain/" PLX_TEXT(PLX_VARIANT),
                    tx_burst<Plain>,
                    rx_burst<Plain>,
                    tx_burst_engine<Plain>,
                    copy_out<Plain>,
                    copy_past<Plain>,
                    tx_reserve<Plain>,
                    tx_commit<Plain>,
                    tx_flow<Plain>,
                    tx_flow_engine<Plain>,
                    rx_flow<Plain>,
                    rx_next_flow<Plain>};
const Ops write_combining_ops{
    "wc/" PLX_TEXT(PLX_VARIANT),     tx_burst<WriteCombining>,  rx_burst<WriteCombining>,
    tx_burst_engine<WriteCombining>, copy_out<WriteCombining>,  copy_past<WriteCombining>,
    tx_reserve<WriteCombining>,      tx_commit<WriteCombining>, tx_flow<WriteCombining>,
    tx_flow_engine<WriteCombining>,  rx_flow<WriteCombining>,   rx_next_flow<WriteCombining>};
const Ops direct_store_ops{"movdir64b/" PLX_TEXT(PLX_VARIANT),
                           tx_burst<DirectStore>,
                           rx_burst<DirectStore>,
                           tx_burst_engine<DirectStore>,
                           copy_out<DirectStore>,
                           copy_past<DirectStore>,
                           tx_reserve<DirectStore>,
                           tx_commit<DirectStore>,
                           tx_flow<DirectStore>,
                           tx_flow_engine<DirectStore>,
                           rx_flow<DirectStore>,
                           rx_next_flow<DirectStore>};

} // namespace plx::queue::PLX_VARIANT
