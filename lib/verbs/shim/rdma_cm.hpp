// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_SHIM_RDMA_CM_HPP
#define NTB_VERBS_SHIM_RDMA_CM_HPP

namespace ntb::verbs::shim
{

/// Puts our device below librdmacm, once it is loaded and where there is a map of addresses.
void serve_librdmacm();

} // namespace ntb::verbs::shim

#endif
