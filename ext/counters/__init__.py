# SPDX-License-Identifier: MIT
"""WorkCounts what each activation of a program needed: CPU time, cycles, instructions, last-level misses."""
