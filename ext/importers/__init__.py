# SPDX-License-Identifier: MIT
"""Imports other tools' measurements as records. Each module reads one format."""
