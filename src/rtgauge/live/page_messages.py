# SPDX-License-Identifier: MIT
"""The messages between the process that measures and the one that serves its live page."""

from __future__ import annotations

HEAD = "<BI"
"""The head of each message to the page's process: its kind, and its length in bytes."""
GIVEN, DOCUMENT, LAST, FRAME = range(4)
"""The kinds: JSON with host, token, views and time limits, which comes first; a document; the last document;
a frame.
"""
COUNTS = "<HH"
"""A message from the page's process: the numbers of browsers that get documents, and frames. It comes when
the process is ready, and at each change.
"""
