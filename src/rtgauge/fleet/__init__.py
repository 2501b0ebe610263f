# SPDX-License-Identifier: MIT
"""Runs a fleet: the same jobs on many boards, with `run` and `gate`, until each board is done or put
aside.
"""
