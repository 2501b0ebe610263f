# SPDX-License-Identifier: MIT
"""The store: a database of what many records hold; the records stay files, and the store is made of them."""
