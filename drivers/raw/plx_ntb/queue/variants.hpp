// SPDX-License-Identifier: BSD-3-Clause
// The compiled variants of the hot path, one namespace per instruction set.
#ifndef PLX_QUEUE_VARIANTS_HPP
#define PLX_QUEUE_VARIANTS_HPP

#include "queue/queue.hpp"

namespace plx::queue
{
#define PLX_DECLARE_VARIANT(ns)                                                                    \
    namespace ns                                                                                   \
    {                                                                                              \
    extern const Ops plain_ops, write_combining_ops, direct_store_ops;                             \
    }
PLX_DECLARE_VARIANT(sse4)
PLX_DECLARE_VARIANT(avx2)
PLX_DECLARE_VARIANT(avx512)
#undef PLX_DECLARE_VARIANT
} // namespace plx::queue

#endif
