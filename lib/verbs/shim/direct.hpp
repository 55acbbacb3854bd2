// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_SHIM_DIRECT_HPP
#define NTB_VERBS_SHIM_DIRECT_HPP

struct ntbv_engine;
struct ntbv_node;

namespace ntb::verbs::shim
{

/// Makes the memory of a new node direct if ntb-verbs was asked so. Where it cannot be, a line on
/// standard error says why, and data go by messages.
void begin_direct(ntbv_node *node);
/// Before the node of that engine is closed: what it has counted is kept until the program ends,
/// which says it then if ntb-verbs was to be verbose.
void forget_direct(ntbv_engine *engine);

} // namespace ntb::verbs::shim

#endif
