# SPDX-License-Identifier: MIT
"""Files that may come from anybody, at the door: regular ones only, and bounds on size, depth and count
before they are parsed.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tomllib
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import from_json

from rtgauge.errors import InputError

if TYPE_CHECKING:
    from io import BufferedReader
    from pathlib import Path

MIB = 1 << 20
READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""How a file is opened of which it is not known yet whether it is a regular one."""
MOST_JSON = 64 * MIB
"""Bytes of a JSON file of a record."""
MOST_TOML = MIB
"""Bytes of a plan, a task set, rules or a flowchart."""
MOST_VALUES = 2_000_000
"""Values in one JSON file: an empty list of two bytes takes 64 in memory."""
MOST_DEPTH = 64
MOST_INTEGER = 1 << 63
MOST_FLOAT = 1e30
LARGE_NUMBER = re.compile(rb"[0-9]{19}|[\[:,\s]-?[0-9.]+[eE]")
MOST_TEXT = 4 * MIB
MOST_DOTS = 64
"""In a line of TOML: a key of many parts takes time in their square."""


def regular(handle: int, path: Path, most_bytes: int | None = None) -> BufferedReader:
    """The file of a descriptor, which it closes, for reading; `path` is its name in errors.

    Raises OSError as `open_regular` does.
    """
    try:
        about = os.fstat(handle)
        if stat.S_ISDIR(about.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if most_bytes is not None and about.st_size > most_bytes:
            raise OSError(errno.EFBIG, f"it is larger than {most_bytes / MIB:g} MiB", str(path))
    except OSError:
        os.close(handle)
        raise
    return open(handle, "rb")


def open_regular(path: Path, most_bytes: int | None = None) -> BufferedReader:
    """A regular file, for reading.

    Raises OSError for any other (opening a pipe would wait for its writer) and for one above `most_bytes`.
    """
    return regular(os.open(path, READING), path, most_bytes)


def read_at_most(file: BufferedReader, path: Path, most_bytes: int) -> bytes:
    """The content of an open file of at most `most_bytes`. Raises OSError."""
    data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes / MIB:g} MiB", str(path))
    return data


def read_regular(path: Path, most_bytes: int) -> bytes:
    """The content of a regular file of at most `most_bytes`. Raises OSError."""
    with open_regular(path, most_bytes) as file:
        return read_at_most(file, path, most_bytes)


def _check_depth(document: object) -> None:
    """Raises ValueError where it is nested too deep."""
    level: list[object] = [document] if isinstance(document, (dict, list)) else []
    for _ in range(MOST_DEPTH):
        if not level:
            return
        inner: list[object] = []
        for container in cast("list[dict[str, object] | list[object]]", level):
            values = container.values() if isinstance(container, dict) else container
            inner += [value for value in values if type(value) is dict or type(value) is list]
        level = inner
    raise ValueError(f"it is nested more than {MOST_DEPTH} deep")


def _check_values(document: object) -> None:
    """Bounds that hold for every value, whatever it means. Raises ValueError."""
    _check_depth(document)
    level = [document]
    while level:
        inner: list[object] = []
        for value in level:
            if isinstance(value, dict):
                entries = cast("dict[str, object]", value)
                inner += entries.keys()
                inner += entries.values()
            elif isinstance(value, list):
                inner += cast("list[object]", value)
            elif isinstance(value, int):
                if not -MOST_INTEGER <= value < MOST_INTEGER:
                    raise ValueError("an integer has more than 64 bits (with its sign)")
            elif isinstance(value, float):
                if not abs(value) <= MOST_FLOAT:
                    raise ValueError("a number is not finite, or above 1e30")
            elif isinstance(value, str) and len(value) > MOST_TEXT:
                raise ValueError(f"a text is longer than {MOST_TEXT} characters")
        level = inner


def _has_long_text(data: bytes) -> bool:
    """Whether a text of JSON may be too long."""
    return len(data) > MOST_TEXT and (b'\\"' in data or max(map(len, data.split(b'"'))) > MOST_TEXT)


def parse_json(data: bytes) -> Any:
    """JSON (RFC 8259: UTF-8, no lone surrogates, no NaN) within the bounds above. Raises ValueError."""
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES} values")
    document = from_json(data, allow_inf_nan=False)
    # A number of fewer digits and without an exponent keeps the bounds: looking at each of a million values
    # would take seconds.
    if LARGE_NUMBER.search(data) or _has_long_text(data):
        _check_values(document)
    else:
        _check_depth(document)
    return document


def parse_toml(text: str) -> dict[str, Any]:
    """TOML within the bounds above. Raises ValueError (tomllib.TOMLDecodeError for what is not TOML)."""
    if len(text) > MOST_TOML:
        raise ValueError(f"it is larger than {MOST_TOML / MIB:g} MiB")
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > MOST_DOTS:
            raise ValueError(f"line {number} has more than {MOST_DOTS} dots")
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"it is nested more than {MOST_DEPTH} deep") from None
    _check_values(document)
    return document


def toml_of(text: str, subject: str) -> dict[str, Any]:
    """`parse_toml`; `subject` is what the text is called in the error. Raises InputError."""
    try:
        return parse_toml(text)
    except ValueError as error:
        raise InputError(f"{subject} is not TOML: {error}") from None


def read_toml(path: Path, subject: str) -> dict[str, Any]:
    """The TOML in a file; `subject` is what it is called in the error. Raises InputError."""
    try:
        return toml_of(read_regular(path, MOST_TOML).decode("utf-8"), subject)
    except UnicodeDecodeError as error:
        raise InputError(f"{subject} is not TOML: {error}") from None
    except OSError as error:
        raise InputError(f"{subject} cannot be read: {error.strerror}") from None
