# SPDX-License-Identifier: MIT
"""Reads the lines `folded` of a spool, into which the engine folds the windows of a session that is over
(engine/fold.c).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import ValidationError

from rtgauge.errors import RecordError
from rtgauge.record.histogram import ALPHABET, OVERFLOW_BIN, encode_bins
from rtgauge.record.stream import Window

MOST_BITS = 60
"""Of a number."""
_BITS = {chr(digit): f"{value:06b}" for value, digit in enumerate(ALPHABET)}


def _numbers(text: str) -> list[int]:
    """Return the numbers of a text in the Elias gamma code. Raises RecordError if it is damaged."""
    try:
        bits = "".join([_BITS[digit] for digit in text])
    except KeyError:
        raise RecordError("folded bins are not in Base64") from None
    numbers: list[int] = []
    at = 0
    while (first := bits.find("1", at)) >= 0:
        end = 2 * first - at + 1
        if end > len(bits) or first - at >= MOST_BITS:
            raise RecordError("folded bins are cut off, or contain a number of more than 60 bits")
        numbers.append(int(bits[first:end], 2))
        at = end
    return numbers


def _bins(text: str, count: int) -> str:
    """Return folded bins as a window has them. Raises RecordError if they are not of so many values."""
    numbers = _numbers(text)
    bins = np.cumsum(np.array(numbers[::2], dtype=np.int64)) - (OVERFLOW_BIN + 1)
    if len(numbers) % 2 or sum(numbers[1::2]) != count or (len(bins) and bins[-1] > OVERFLOW_BIN):
        raise RecordError("folded bins are damaged")
    return encode_bins(bins, np.array(numbers[1::2], dtype=np.int64))


def window_of(document: dict[str, Any]) -> bytes:
    """Return a line `folded` as the engine's line `window` of the whole session. Raises RecordError if it is
    damaged.
    """
    try:
        bins = {
            "bins": _bins(str(document["bins"]), document["count"]),
            "missed_bins": _bins(str(document["missed_bins"]), document["missed"]),
        }
        whole = {"phase": "measure", "index": 0, **document, "type": "window", **bins}
        return Window.model_validate(whole).model_dump_json().encode()
    except (KeyError, ValidationError) as error:
        raise RecordError(f"a folded window is damaged: {error}") from None
