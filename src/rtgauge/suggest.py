# SPDX-License-Identifier: MIT
"""The word that somebody probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """A phrase for an error: `; did you mean 'interval'?`, or the list of what there is where nothing is near."""
    candidates = sorted(known)
    close = difflib.get_close_matches(word, candidates, n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; there are: {', '.join(candidates)}"
