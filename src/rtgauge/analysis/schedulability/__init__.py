# SPDX-License-Identifier: MIT
"""Whether a set of periodic tasks meets its deadlines under fixed priorities: calculated, not measured."""
