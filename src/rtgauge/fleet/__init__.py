# SPDX-License-Identifier: MIT
"""The fleet: the same jobs on many boards, by `run` and `gate`, until each board is done or put aside."""
