# SPDX-License-Identifier: MIT
"""Escapes text for people. Characters that could control a terminal, reorder text or break XML become
\\uXXXX.
"""

from __future__ import annotations

import re

# Unicode's categories Cc (except tab and newline), Cf, Cs, Zl and Zp, and the noncharacters.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufdd0-\ufdef"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    + "".join(f"{chr(plane | 0xFFFE)}{chr(plane | 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000))
    + "]"
)


def _as_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def escaped(text: str) -> str:
    r"""Return the text with unsafe characters as `\uXXXX`, which JSON reads as the same text. Tab and newline
    stay.
    """
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_as_escape, text)


def one_line(text: str) -> str:
    r"""Return `escaped(text)` with newlines as `\n` and tabs as `\t`."""
    return escaped(text).replace("\n", "\\n").replace("\t", "\\t")
