// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_QUEUE_STATES_HPP
#define NTB_VERBS_QUEUE_STATES_HPP

#include "ntbv.h"

namespace ntb::verbs
{

/// Whether a queue pair may go from one state to the other with these attributes.
bool allowed(ntbv_qp_type type, ntbv_qp_state from, ntbv_qp_state to, unsigned mask);

/// Whether the values of the attributes in `mask` are in range.
bool valid(const ntbv_qp_attr &attr, unsigned mask);

/// Copies the attributes in `mask`; not the state.
void merge(const ntbv_qp_attr &from, unsigned mask, ntbv_qp_attr &to);

} // namespace ntb::verbs

#endif
