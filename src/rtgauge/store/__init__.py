# SPDX-License-Identifier: MIT
"""Keeps a store: a database of what many records hold. The records stay files; it is built from them."""
