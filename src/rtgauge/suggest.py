# SPDX-License-Identifier: MIT
"""Suggestions for misspelled names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message: `; did you mean 'interval'?`, or the list of known names if none is
    similar.
    """
    candidates = sorted(known)
    close = difflib.get_close_matches(word, candidates, n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; there are: {', '.join(candidates)}"
