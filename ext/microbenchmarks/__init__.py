# SPDX-License-Identifier: MIT
"""What operations of the kernel cost: a task switch, a preemption, a hand-over, a wait for a lock."""
