# SPDX-License-Identifier: MIT
"""The store: a database of the contents of many records. The records stay files; it is built from them."""
