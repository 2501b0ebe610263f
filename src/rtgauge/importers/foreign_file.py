# SPDX-License-Identifier: MIT
"""Reads other tools' files, which must be regular files of limited size, line length and nesting."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from pydantic import BaseModel, ValidationError

from rtgauge.errors import InputError
from rtgauge.input_file import open_regular, parse_json, read_regular
from rtgauge.units import NS_PER_S

HEAD_BYTES = 1 << 16
MAX_LINE_BYTES = 1 << 16
MAX_LINES = 10_000_000
"""Reading this many lines takes half a minute. They are three hours of `cyclictest -v` at 1 ms on one CPU."""
MAX_DOCUMENT_BYTES = 24 << 20
"""A limit, because JSON and XML take up to 30 times their size in memory."""
MAX_COUNT = 2**48
"""Maximum samples of one series: 9 years at 1 MHz."""
MAX_VALUE_NS = 10**15
"""Maximum latency: eleven days."""

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|c)")


@contextmanager
def open_file(path: Path) -> Generator[BinaryIO]:
    """Open a regular file for reading. Raises InputError for anything else."""
    try:
        with open_regular(path) as file:
            yield file
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def head(path: Path) -> bytes:
    """Return the first 64 KiB of a file. Raises InputError if it is empty."""
    with open_file(path) as file:
        data = file.read(HEAD_BYTES)
    if not data.strip():
        raise InputError(f"{path} is empty")
    return data


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line without its end) of a text. Screen control sequences also end a line.

    Raises InputError if the file is not text, or if a line or the file is too long.
    """
    number = 0
    with open_file(path) as file:
        while line := file.readline(MAX_LINE_BYTES):
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                raise InputError(f"{path}: line {number + 1} is longer than {MAX_LINE_BYTES >> 10} KiB")
            try:
                text = line.decode()
            except UnicodeDecodeError:
                raise InputError(f"{path} is not text: line {number + 1} is not UTF-8") from None
            for part in (_ESCAPE.sub("\n", text) if "\x1b" in text else text).splitlines() or [""]:
                number += 1
                if number > MAX_LINES:
                    raise InputError(f"{path} has more than {MAX_LINES} lines")
                yield number, part


def document(path: Path) -> bytes:
    """Read a whole JSON or XML file. Raises InputError if it is too large."""
    try:
        return read_regular(path, MAX_DOCUMENT_BYTES)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _escaped(line: bytes) -> bytes:
    """Escape the value of `cmdline` in a line of JSON."""
    name, colon, value = line.partition(b'": "')
    text = value.rstrip().removesuffix(b",").rstrip()
    if not colon or name.strip() not in {b'"cmdline', b'"cmdline:'} or not text.endswith(b'"'):
        return line
    words = json.dumps(text[:-1].decode(errors="replace"))[1:-1].encode()
    return name + colon + words + value[len(text) - 1 :]


def json_document(path: Path) -> dict[str, Any]:
    """Parse the object in a JSON file, after any screen lines. The command line, which rt-tests do not
    escape, is repaired.

    Raises InputError if there is no JSON object.
    """
    data = document(path)
    data = data[max(data.find(b"{"), 0) :]
    try:
        try:
            root: Any = parse_json(data)
        except ValueError:
            root = parse_json(b"\n".join(map(_escaped, data.split(b"\n"))))
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON ({str(error)[:100]}); is the file cut short?") from None
    if not isinstance(root, dict):
        raise InputError(f"{path} is not a JSON object")
    return cast("dict[str, Any]", root)


Document = TypeVar("Document", bound=BaseModel)


def validated(model: type[Document], raw: Mapping[str, Any], source: str, tool: str) -> Document:
    """Return the document as a `model`. Raises InputError if it does not fit. `tool`: the program that wrote
    it, for the error.
    """
    try:
        return model.model_validate(raw)
    except (ValidationError, RecursionError) as error:
        details = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": "too deep"}
        where = ".".join(str(part) for part in details["loc"])[:80]
        raise InputError(f"{source} is a damaged output of {tool} ({where}: {details['msg']})") from None


def damaged(source: str, problem: str) -> InputError:
    """Make the error for a damaged file."""
    return InputError(f"{source} is damaged: {problem}")


def clock_ns(*parts: str) -> int:
    """Convert hours, minutes and seconds to ns. If there are four numbers, the first is days."""
    *days, hours, minutes, seconds = map(int, parts)
    return (((sum(days) * 24 + hours) * 60 + minutes) * 60 + seconds) * NS_PER_S


def utc(text: str | None) -> str | None:
    """Convert an RFC 5322 date to UTC in ISO 8601; None if it is invalid."""
    try:
        return None if text is None else f"{parsedate_to_datetime(text).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
