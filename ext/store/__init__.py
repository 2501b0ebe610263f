# SPDX-License-Identifier: MIT
"""Keeps a store: a database with the contents of many records, built from them. The records stay files."""
