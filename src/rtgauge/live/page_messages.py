# SPDX-License-Identifier: MIT
"""What the process that measures and the one that serves its live page send each other."""

from __future__ import annotations

HEAD = "<BI"
"""Before each content, to the page's process: what it is, and its length (bytes)."""
GIVEN, DOCUMENT, LAST, FRAME = range(4)
"""JSON with host, token, views and time limits, which comes first; a document; the last one; a frame."""
COUNTS = "<HH"
"""From the page's process, once when it serves and then at each change: how many browsers follow documents,
and how many follow frames.
"""
