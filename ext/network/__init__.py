# SPDX-License-Identifier: MIT
"""The network in the loop: the cycle of a control loop with a device that only answers."""
