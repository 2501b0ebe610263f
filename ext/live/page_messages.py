# SPDX-License-Identifier: MIT
"""Defines the messages between the process that measures and the process that serves its live page."""

from __future__ import annotations

HEAD = "<BI"
"""The head of each message to the page's process: the kind, and the length in bytes."""
GIVEN, DOCUMENT, LAST, FRAME = range(4)
"""The kinds: JSON with host, token, template, views and limits (first); document; last document; frame."""
COUNTS = "<HH"
"""A message from the page's process: the numbers of browsers that get documents and that get frames. It is
sent when the process is ready, and at each change.
"""
