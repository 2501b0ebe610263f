# SPDX-License-Identifier: MIT
"""A module a format: records for other programs."""
