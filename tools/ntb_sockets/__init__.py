# SPDX-License-Identifier: BSD-3-Clause
"""Programs of others under the socket preload: a daemon for them, what their connections did, their own suites."""
