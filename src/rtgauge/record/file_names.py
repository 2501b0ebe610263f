# SPDX-License-Identifier: MIT
"""Names of machines and plans as parts of file names."""

from __future__ import annotations

import re


def clean_name(text: str) -> str:
    """A host's or plan's name as part of a file name: letters, digits, `.`, `_` and `-`, at most 40."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:40].strip("-.") or "unnamed"
