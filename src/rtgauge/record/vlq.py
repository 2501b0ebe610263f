# SPDX-License-Identifier: MIT
"""Numbers in Base64 VLQ (as in source maps), in which the engine's stream has the bins of a window
(docs/formats/stream.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rtgauge.errors import RecordError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
MOST_DIGITS = 12
"""Of a number: 60 bits, of which one is the sign."""
DIGITS_OF_32_BITS = 6
NO_DIGIT = 255

_DIGITS = np.full(256, NO_DIGIT, dtype=np.uint8)
_DIGITS[np.frombuffer(ALPHABET, dtype=np.uint8)] = np.arange(64, dtype=np.uint8)


def decode(texts: Sequence[str]) -> tuple[npt.NDArray[np.int64 | np.int32], npt.NDArray[np.int64]]:
    """The numbers of all texts, one after the other, and how many each text has (shape: of texts).

    Raises RecordError.

    The numbers have 32 bits where all fit: half the memory to touch is half the time.
    """
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    digits = _DIGITS[np.frombuffer("".join(texts).encode("ascii", "replace"), dtype=np.uint8)]
    behind = np.cumsum(lengths)
    if np.any(digits == NO_DIGIT) or np.any(digits[behind[lengths > 0] - 1] & 32):
        raise RecordError("the bins of a window are not in Base64 VLQ")
    last = np.flatnonzero(digits < 32)
    first = np.empty_like(last)
    first[:1] = 0
    np.add(last[:-1], 1, out=first[1:])
    numbers = np.diff(np.searchsorted(last, behind), prepend=0)
    longer = np.flatnonzero(last > first)
    start, size = first[longer], last[longer] - first[longer] + 1
    most = int(size.max(initial=1))
    if most > MOST_DIGITS:
        raise RecordError("the bins of a window have a number of more than 59 bits")
    values = digits[first].astype(np.int32 if most <= DIGITS_OF_32_BITS else np.int64)
    values &= 31
    for place in range(1, most):
        has = size > place
        values[longer[has]] |= (digits[start[has] + place] & 31).astype(values.dtype) << (5 * place)
    negative = np.flatnonzero(values & 1)
    values >>= 1
    values[negative] *= -1
    return values, numbers


def encode(numbers: Sequence[int]) -> str:
    """The inverse, of one text."""
    text = bytearray()
    for number in numbers:
        rest = -number << 1 | 1 if number < 0 else number << 1
        while rest > 31:
            text.append(ALPHABET[32 | rest & 31])
            rest >>= 5
        text.append(ALPHABET[rest])
    return text.decode()
