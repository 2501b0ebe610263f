# SPDX-License-Identifier: MIT
"""Reads other tools' files: regular files only, with bounded size, line length and depth, so that a damaged one costs a message and not the memory."""

from __future__ import annotations

import json
import os
import re
import stat
from contextlib import contextmanager
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from rtgauge.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

HEAD_BYTES = 1 << 16
MAX_LINE_BYTES = 1 << 16
MAX_LINES = 20_000_000
"""A day of `cyclictest -v` at 200 us on one CPU is 4e8 lines; nobody keeps these."""
MAX_DOCUMENT_BYTES = 24 << 20
"""JSON and XML take up to 30 times their size in memory."""
MAX_DEPTH = 32
MAX_COUNT = 10**15
"""Samples of one series: 30 years at 1 MHz."""
MAX_VALUE_NS = 10**15
"""One latency: eleven days."""

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|c)")
_COMMAND = re.compile(r'^(\s*"cmdline:?":\s*")(.*)("\s*,?\s*)$', re.MULTILINE)


@contextmanager
def open_file(path: Path) -> Generator[BinaryIO]:
    """The regular file, open for reading. Raises InputError for anything else: a pipe would be waited for, a device never ends."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{str(path)!r} is not the name of a file") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InputError(f"{path} cannot be read: it is not a regular file")
    with os.fdopen(handle, "rb") as file:
        try:
            yield file
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from None


def head(path: Path) -> bytes:
    """The first 64 KiB. Raises InputError for an empty file."""
    with open_file(path) as file:
        data = file.read(HEAD_BYTES)
    if not data.strip():
        raise InputError(f"{path} is empty")
    return data


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number, line) of a text, from 1, without line ends; what clears or moves on a screen ends a line. Raises InputError where it is no text."""
    number = 0
    with open_file(path) as file:
        while line := file.readline(MAX_LINE_BYTES):
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                raise InputError(f"{path}: line {number + 1} is longer than {MAX_LINE_BYTES >> 10} KiB")
            try:
                text = line.decode()
            except UnicodeDecodeError:
                raise InputError(f"{path} is not text: line {number + 1} is not UTF-8") from None
            for part in _ESCAPE.sub("\n", text).splitlines() or [""]:
                number += 1
                if number > MAX_LINES:
                    raise InputError(f"{path} has more than {MAX_LINES} lines")
                yield number, part


def document(path: Path) -> bytes:
    """A whole JSON or XML file. Raises InputError for a large one."""
    with open_file(path) as file:
        data = file.read(MAX_DOCUMENT_BYTES + 1)
    if len(data) > MAX_DOCUMENT_BYTES:
        raise InputError(f"{path} is larger than {MAX_DOCUMENT_BYTES >> 20} MiB")
    return data


def _quoted(match: re.Match[str]) -> str:
    return match[1] + json.dumps(match[2])[1:-1] + match[3]


def _check_tree(root: Any, path: Path) -> None:
    """Raises InputError for deep nesting, and for text that is not Unicode (half of a surrogate pair)."""
    level: list[Any] = [root]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                mapping = cast("dict[str, Any]", item)
                below += [*mapping.keys(), *mapping.values()]
            elif isinstance(item, list):
                below += cast("list[Any]", item)
            elif isinstance(item, str) and not item.isascii():
                try:
                    item.encode()
                except UnicodeEncodeError:
                    raise InputError(f"{path} is damaged: it has text that is not Unicode") from None
        if not below:
            return
        level = below
    raise InputError(f"{path} is damaged: it is nested more than {MAX_DEPTH} deep")


def json_document(path: Path) -> dict[str, Any]:
    """The object in a JSON file. rt-tests write their command line without escaping it: that is mended. Raises InputError."""
    try:
        text = document(path).decode()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text") from None
    start = text.find("{")
    text = text[max(start, 0) :]
    try:
        try:
            root: Any = json.loads(text)
        except ValueError:
            root = json.loads(_COMMAND.sub(_quoted, text))
    except (ValueError, RecursionError):
        raise InputError(f"{path} is not valid JSON, although it begins like it; is it cut short?") from None
    if not isinstance(root, dict):
        raise InputError(f"{path} is not a JSON object")
    _check_tree(root, path)
    return cast("dict[str, Any]", root)


def utc(text: str | None) -> str | None:
    """An RFC 5322 date as UTC, ISO 8601; None where it is none."""
    try:
        return None if text is None else f"{parsedate_to_datetime(text).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
