// SPDX-License-Identifier: BSD-3-Clause
// What the harness shows, on standard output.
#ifndef ECHO_HARNESS_SHOW_HPP
#define ECHO_HARNESS_SHOW_HPP

namespace echo
{

class Harness;

void show_config(Harness &harness);
void show_stats(Harness &harness);
void show_xstats(Harness &harness);
void show_link(Harness &harness);
void show_channels(Harness &harness);
void show_copy(Harness &harness);
/// The whole dump of the device, registers last.
void show_regs(Harness &harness);

} // namespace echo

#endif
