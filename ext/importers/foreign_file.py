# SPDX-License-Identifier: MIT
"""Reads other tools' files, which must be regular files of limited size, line length and nesting.

People copy outputs from serial consoles, journals and mails, and out of editors. Here the text loses what
they add: a byte order mark, UTF-16, colours, and at the beginning of a line time stamps, a syslog's host and
program, quote marks and line numbers.
"""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from rtgauge.errors import InputError
from rtgauge.input_file import open_regular, parse_json, read_regular
from rtgauge.record.writer import utc_time
from rtgauge.units import NS_PER_S

HEAD_BYTES = 1 << 20
"""A format is recognised in this part of a file; the log of a boot can come before the tool's output."""
MAX_LINE_BYTES = 1 << 16
MAX_LINES = 10_000_000
"""Reading this many lines takes half a minute. They are three hours of `cyclictest -v` at 1 ms on one CPU."""
MAX_DOCUMENT_BYTES = 24 << 20
"""A limit, because JSON and XML take up to 30 times their size in memory."""
MAX_COUNT = 2**48
"""Maximum samples of one series: 9 years at 1 MHz."""
MAX_VALUE_NS = 10**15
"""Maximum latency: eleven days."""

_COLOUR = re.compile(r"\x1b(?:\[[0-9;:]*[mK]|\(B)")
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|c)")
_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_PROGRAMS = "kernel|cyclictest|cyclicdeadline|signaltest|hwlatdetect|oslat|rtla|latency|latmus"
_STAMP = rf"""(?:
        >(?:[ ]?>)*+                                                     # a quoted mail
      | <[0-9]{{1,3}}>                                                   # the level in /dev/kmsg
      | \[[ ]*+[0-9]{{1,9}}\.[0-9]{{3,9}}\](?:\[[ ]*+[TC][0-9]++\])?:?     # the kernel's log, a serial line
      | [IWEF][0-9]{{4}}[ ]{_TIME}[ ]++[0-9]++[ ][^ \t\]]{{1,80}}\]         # klog
      | \[?(?:(?:[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]|{_MONTH}[ ][ 0-9][0-9][ ])?{_TIME}
          (?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)\]?(?![0-9.,:])
          (?:[ ][A-Za-z0-9_.-]{{1,80}}[ ](?:[^ \t\[:]{{1,80}}\[[0-9]{{1,9}}\]|{_PROGRAMS}):)?
    )"""
_PREFIX = re.compile(rf"{_STAMP}(?:[ \t]*+{_STAMP}){{0,3}}[ \t]?", re.VERBOSE)
"""What logs and mails put before a line. The line keeps its own indentation."""
_LINE_NUMBER = re.compile(
    r"[ \t]*+[0-9]{1,6}[:.)|]?[ \t]++(?=T:[ \t]*+[0-9]|\#[ \t]|RT[DHST]\||HS[DHS]\||Index[ \t]|ts:)"
)


def _encoding(start: bytes) -> str:
    """Return the encoding of a text: UTF-16, by its byte order mark or its zero bytes, or else UTF-8."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if len(start) >= 4 and start[1] == start[3] == 0 and start[0] and start[2]:
        return "utf-16-le"
    if len(start) >= 4 and start[0] == start[2] == 0 and start[1] and start[3]:
        return "utf-16-be"
    return "utf-8"


def _clean(text: str) -> list[str]:
    """Split a line at screen control sequences, and remove colours and prefixes."""
    if "\x1b" in text:
        text = _ESCAPE.sub("\n", _COLOUR.sub("", text))
    cleaned: list[str] = []
    for part in text.splitlines() or [""]:
        if prefix := _PREFIX.match(part):
            part = part[prefix.end() :]  # noqa: PLW2901 - the same line
        number = _LINE_NUMBER.match(part)
        cleaned.append(part[number.end() :] if number else part)
    return cleaned


@contextmanager
def open_file(path: Path) -> Generator[io.BufferedReader]:
    """Open a regular file for reading. Raises InputError for anything else."""
    try:
        with open_regular(path) as file:
            yield file
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def head(path: Path) -> str:
    """Return the beginning of a file, in lines as `lines` returns them. Raises InputError if it is empty."""
    with open_file(path) as file:
        data = file.read(HEAD_BYTES)
    text = data.decode(_encoding(data), errors="replace").removeprefix("\ufeff")
    if not text.strip():
        raise InputError(f"{path} is empty")
    return "\n".join(part for line in text.split("\n") for part in _clean(line))


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line without its end) of a text, without the prefixes that logs and mails add.
    Screen control sequences, except colours, also end a line.

    Raises InputError if the file is not text, or if a line or the file is too long.
    """
    number = 0
    with open_file(path) as file:
        encoding = _encoding(file.peek(4))
        text_file = io.TextIOWrapper(file, encoding, newline="\n") if encoding != "utf-8" else None
        try:
            while line := (file if text_file is None else text_file).readline(MAX_LINE_BYTES):
                text = line.decode() if isinstance(line, bytes) else line
                if len(line) == MAX_LINE_BYTES and not text.endswith("\n"):
                    raise InputError(f"{path}: line {number + 1} is longer than {MAX_LINE_BYTES >> 10} KiB")
                for part in _clean(text.removeprefix("\ufeff") if number == 0 else text):
                    number += 1
                    if number > MAX_LINES:
                        raise InputError(f"{path} has more than {MAX_LINES} lines")
                    yield number, part
        except UnicodeDecodeError:
            raise InputError(f"{path} is not text: line {number + 1} is not {encoding.upper()}") from None


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


_NOT_A_NUMBER = re.compile(rb'("[^"\n]{1,80}" *: *)-?nan\b')
_DOCUMENT_END = re.compile(rb"^\}[ \t\r]*$", re.MULTILINE)
_DOCUMENT_BEGIN = re.compile(rb"^[ \t]*+\{", re.MULTILINE)


def _repaired(data: bytes) -> bytes:
    """Repair what rt-tests write that is not JSON (quotes in the command line, the average -nan of no
    samples), and remove prefixes of lines.
    """
    text = data.decode(errors="replace")
    cleaned = (part for line in text.split("\n") for part in _clean(line))
    return b"\n".join(_NOT_A_NUMBER.sub(rb"\1null", _escaped(line.encode())) for line in cleaned)


def _json_object(data: bytes, path: Path) -> dict[str, Any]:
    try:
        try:
            root: Any = parse_json(data)
        except ValueError:
            root = parse_json(_repaired(data))
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON ({str(error)[:100]}); is the file cut short?") from None
    if not isinstance(root, dict):
        raise InputError(f"{path} is not a JSON object")
    return cast("dict[str, Any]", root)


def json_documents(path: Path) -> list[dict[str, Any]]:
    """Parse the objects in a JSON file, each of which ends in a line `}`. Lines of a screen may come before
    each object.

    Raises InputError if there is no JSON object.
    """
    data = document(path)
    encoding = _encoding(data)
    if encoding != "utf-8":
        data = data.decode(encoding, errors="replace").encode()
    data = data.removeprefix(codecs.BOM_UTF8)
    objects: list[dict[str, Any]] = []
    for part in _documents(data):
        begin = _DOCUMENT_BEGIN.search(part)
        if begin is not None or not objects:
            at = part.find(b"{") if begin is None else begin.start()
            objects.append(_json_object(part[max(at, 0) :], path))
    if not objects:
        raise InputError(f"{path} is not a JSON object")
    return objects


def _documents(data: bytes) -> Iterator[bytes]:
    """Yield the parts of a file that end in a line `}`, and the rest."""
    start = 0
    for end in _DOCUMENT_END.finditer(data):
        yield data[start : end.end()]
        start = end.end()
    if data[start:].strip():
        yield data[start:]


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
        raise InputError(f"{source} is damaged output of {tool} ({where}: {details['msg']})") from None


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
        return None if text is None else utc_time(parsedate_to_datetime(text))
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
