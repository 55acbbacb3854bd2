// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_SHIM_UCX_HPP
#define NTB_VERBS_SHIM_UCX_HPP

namespace ntb::verbs::shim
{

/// Lets UCX, if it is in this process, take the device for one that it may use. May be called as
/// often as one likes.
void serve_ucx();

} // namespace ntb::verbs::shim

#endif
