# SPDX-License-Identifier: BSD-3-Clause
"""What tools/plx-doctor is made of. Python's standard library only."""
