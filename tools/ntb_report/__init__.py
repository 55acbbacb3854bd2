# SPDX-License-Identifier: BSD-3-Clause
"""What tools/report is made of: reading result files, and turning them into one page."""
