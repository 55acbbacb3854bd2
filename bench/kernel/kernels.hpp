// SPDX-License-Identifier: BSD-3-Clause
// Which build of the kernel this CPU runs, and which hints it has.
#ifndef BENCH_KERNEL_KERNELS_HPP
#define BENCH_KERNEL_KERNELS_HPP

#include "kernel/kernel.hpp"

#include <string_view>
#include <vector>

namespace bench
{

const Kernel &best_kernel();
std::vector<Writer> supported_writers();
std::vector<Reader> supported_readers();
std::string_view name_of(Writer);
std::string_view name_of(Reader);
std::string_view name_of(PingForm);

} // namespace bench

#endif
