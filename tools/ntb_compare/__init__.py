# SPDX-License-Identifier: BSD-3-Clause
"""What tools/compare is made of: the peers, how a pair of processes is run, what comes of it."""
