# SPDX-License-Identifier: MIT
"""A module a foreign format: measurements of other tools become records."""
