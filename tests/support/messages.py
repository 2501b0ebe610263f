# SPDX-License-Identifier: MIT
"""Checks what a message says without its wording."""

from __future__ import annotations

import re


def missing(text: str, *facts: str) -> list[str]:
    """Return the facts that a message lacks: names, numbers with their unit, options, commands.

    Each must stand there as a whole word, so that 12 is not in 112. Line breaks count as spaces.
    """
    flat = " ".join(text.split())
    return [fact for fact in facts if re.search(rf"(?<![\w.-]){re.escape(fact)}(?![\w-]|\.\d)", flat) is None]
