# SPDX-License-Identifier: MIT
"""Measures on co-kernels: Xenomai 3 (Cobalt) and RTAI."""
