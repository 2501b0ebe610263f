# SPDX-License-Identifier: MIT
"""Imports other tools' measurements as records; each module reads one format."""
