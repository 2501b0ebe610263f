# SPDX-License-Identifier: MIT
"""Suggests known names for misspelled ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST_LISTED = 30
"""The most known names that are listed. If there are more, only the nearest are named."""


RENAMED = {"activations-untold": "activations-unknown", "in-band-switches": "mode-switches"}
"""What marks of earlier versions are called now."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message: `; did you mean 'interval'?`. If no known name is similar, the text
    lists the known names, or the three nearest if there are too many.
    """
    candidates = sorted(known)
    if RENAMED.get(word) in candidates:
        return f"; it is called {RENAMED[word]} now"
    close = difflib.get_close_matches(word, candidates, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    if len(candidates) <= MOST_LISTED:
        return f"; there are: {', '.join(candidates)}"
    three = difflib.get_close_matches(word.lower(), candidates, n=3, cutoff=0)
    return f"; the nearest are {', '.join(three)}"
