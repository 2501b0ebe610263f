# SPDX-License-Identifier: MIT
"""Reads files from any source. It accepts only regular files, and limits size, depth and number of values
before parsing.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tomllib
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

from pydantic_core import from_json

from rtgauge.errors import InputError

MIB = 1 << 20
READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Flags for opening a file that may turn out not to be regular."""
MOST_JSON = 64 * MIB
"""The largest JSON file of a record, in bytes."""
MOST_TOML = MIB
"""The largest TOML file (plan, task set, rules or flowchart), in bytes."""
MOST_VALUES = 2_000_000
"""The most values in one JSON file. An empty list of two bytes takes 64 bytes in memory."""
MOST_DEPTH = 64
MOST_INTEGER = 1 << 63
MOST_FLOAT = 1e30
LARGE_NUMBER = re.compile(rb"[0-9]{19}|[\[:,\s]-?[0-9.]+[eE]")
MOST_TEXT = 4 * MIB
MOST_DOTS = 64
"""The most dots in a line of TOML. The time to parse a key grows with the square of the number of its parts.
"""


def real_path(path: Path) -> Path:
    """Return a path without its links. A link that leads to itself stays, and fails when it is opened;
    Path.resolve() raises RuntimeError.
    """
    return Path(os.path.realpath(path))


def regular(handle: int, path: Path, most_bytes: int | None = None) -> BufferedReader:
    """Return a reader that takes over the open descriptor `handle`. `path`: the file's name in errors.

    Closes the descriptor and raises OSError if the file exceeds `most_bytes` or is not regular.
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
    """Open a regular file for reading.

    Raises OSError if it exceeds `most_bytes` or is of another kind (a pipe would wait for its writer).
    """
    return regular(os.open(path, READING), path, most_bytes)


def read_at_most(file: BufferedReader, path: Path, most_bytes: int) -> bytes:
    """Return the content of an open file. Raises OSError if it has more than `most_bytes`."""
    data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes / MIB:g} MiB", str(path))
    return data


def read_regular(path: Path, most_bytes: int) -> bytes:
    """Return the content of a regular file. Raises OSError as `open_regular` does."""
    with open_regular(path, most_bytes) as file:
        return read_at_most(file, path, most_bytes)


def _check_depth(document: object) -> None:
    """Raise ValueError if the document is nested too deeply."""
    level: list[object] = [document] if isinstance(document, (dict, list)) else []
    for _ in range(MOST_DEPTH):
        if not level:
            return
        inner: list[object] = []
        for container in cast("list[dict[str, object] | list[object]]", level):
            values = container.values() if isinstance(container, dict) else container
            inner += [value for value in values if type(value) is dict or type(value) is list]
        level = inner
    raise ValueError(f"its values are nested more than {MOST_DEPTH} levels deep")


def _check_values(document: object) -> None:
    """Check the limits that every value must keep. Raises ValueError if one is exceeded."""
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
                    raise ValueError("an integer does not fit into 64 bits")
            elif isinstance(value, float):
                if not abs(value) <= MOST_FLOAT:
                    raise ValueError("a number is infinite, not a number (NaN) or larger than 1e30")
            elif isinstance(value, str) and len(value) > MOST_TEXT:
                raise ValueError(f"a text is longer than {MOST_TEXT} characters")
        level = inner


def _has_long_text(data: bytes) -> bool:
    """Return whether a text in this JSON may be too long."""
    return len(data) > MOST_TEXT and (b'\\"' in data or max(map(len, data.split(b'"'))) > MOST_TEXT)


def parse_json(data: bytes) -> Any:
    """Parse JSON (RFC 8259, UTF-8, no NaN) within the limits above. Raises ValueError for anything else."""
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES} values")
    document = from_json(data, allow_inf_nan=False)
    # A number with fewer digits and no exponent is within the limits. To check each of a million values would
    # take seconds.
    if LARGE_NUMBER.search(data) or _has_long_text(data):
        _check_values(document)
    else:
        _check_depth(document)
    return document


def json_object(data: bytes) -> dict[str, Any] | None:
    """Parse a JSON object as `parse_json` does; None if the data is not a valid object."""
    try:
        document = parse_json(data)
    except ValueError:
        return None
    return cast("dict[str, Any]", document) if isinstance(document, dict) else None


def json_objects(data: bytes) -> list[dict[str, Any]]:
    """Return the JSON object in each non-empty line. Raises ValueError if such a line is not an object."""
    parsed = [json_object(line) for line in data.split(b"\n") if line]
    objects = [line for line in parsed if line is not None]
    if len(objects) < len(parsed):
        raise ValueError("a line is not a JSON object")
    return objects


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML within the limits above. Raises ValueError (tomllib.TOMLDecodeError for invalid syntax)."""
    if len(text) > MOST_TOML:
        raise ValueError(f"it is larger than {MOST_TOML / MIB:g} MiB")
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > MOST_DOTS:
            raise ValueError(f"line {number} has more than {MOST_DOTS} dots")
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"its values are nested more than {MOST_DEPTH} levels deep") from None
    _check_values(document)
    return document


def toml_of(text: str, subject: str) -> dict[str, Any]:
    """Parse TOML like `parse_toml`. Raises InputError, which calls the text `subject`."""
    try:
        return parse_toml(text)
    except ValueError as error:
        raise InputError(f"{subject} is not TOML: {error}") from None


def read_toml(path: Path, subject: str) -> dict[str, Any]:
    """Parse a TOML file. Raises InputError, which calls the file `subject`."""
    try:
        return toml_of(read_regular(path, MOST_TOML).decode("utf-8"), subject)
    except UnicodeDecodeError as error:
        raise InputError(f"{subject} is not TOML: {error}") from None
    except OSError as error:
        raise InputError(f"{subject} cannot be read: {error.strerror}") from None
