# SPDX-License-Identifier: MIT
"""A TOML text in which lines, values and pieces were changed, and the places in a document."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

VALUES = ["-1", "1e400", "[]", "{}", "[[]]", "false", "9" * 20, "1979-05-27"]
PIECES = [
    "[",
    "]",
    "{",
    "}",
    "=",
    '"',
    "'",
    ".",
    "\n",
    "1",
    "true",
    "9" * 5_000,
    "[" * 500,
    "a." * 70,
    "1979-05-27",
    "nan",
    "\\ud800",
    "\0",
    "[[chart]]",
    "id",
]


def mutated(text: str, data: st.DataObject) -> str:
    """Return the text with one to four changes."""
    for _ in range(data.draw(st.integers(1, 4))):
        lines = text.split("\n")
        at = data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(["drop", "repeat", "piece", "value", "swap"])):
            case "drop":
                del lines[at : at + data.draw(st.integers(1, 5))]
            case "repeat":
                lines[at:at] = lines[at : at + 3]
            case "piece":
                column = data.draw(st.integers(0, len(lines[at])))
                lines[at] = lines[at][:column] + data.draw(st.sampled_from(PIECES)) + lines[at][column:]
            case "value":
                key, sign, _ = lines[at].partition("=")
                lines[at] = f"{key}{sign} {data.draw(st.sampled_from(VALUES))}" if sign else key
            case _:
                other = data.draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
        text = "\n".join(lines)
    return text


def places(document: Any, where: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a document."""
    inner = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    return [where, *(place for key, value in inner for place in places(value, (*where, key)))]
