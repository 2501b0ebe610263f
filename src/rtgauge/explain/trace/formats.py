# SPDX-License-Identifier: MIT
"""Reads the layout of events in a trace ring (Documentation/trace/events.rst, section 3)."""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from pydantic import ValidationError

from rtgauge.errors import RecordError
from rtgauge.record.stream import TraceFormatsLine

MOST_TEXT = 64 * 1024
MOST_FIELDS = 100
MOST_RECORD = 64 * 1024
"""The maximum size of an event in bytes; no page is larger."""
Value = int | str
_FIELD = re.compile(
    r"^\s*field:(?P<declaration>[^;]{1,500});\s*offset:(?P<offset>[0-9]{1,6});\s*size:(?P<size>[0-9]{1,6});(?:\s*signed:(?P<signed>[01]);)?\s*$"
)
_ID = re.compile(r"^ID: ([0-9]{1,5})$", re.MULTILINE)
_NAME = re.compile(r"^name: (\w{1,100})$", re.MULTILINE)
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""Size in bytes of an unsigned number -> its code in `struct`. A signed number has the lower-case letter."""


@dataclass(frozen=True)
class Field:
    """A field of an event.

    `kind`: number; text (char array); located (text elsewhere in the record); relative (the same, with an
    offset from the field's end); or addresses (of `size` bytes each, up to the end of the record).
    """

    name: str
    offset: int
    size: int
    kind: str
    number: struct.Struct | None

    def value(self, record: bytes) -> Value | None:
        """Return the field's value in a record; None if the record is too short or the field is neither
        number nor text.

        Addresses become one text of hexadecimal numbers, separated by spaces.
        """
        if self.kind == "addresses":
            return " ".join(
                f"{int.from_bytes(record[at : at + self.size], 'little'):x}"
                for at in range(self.offset, len(record) - self.size + 1, self.size)
            )
        if self.offset + self.size > len(record):
            return None
        if self.kind == "text":
            end = self.offset + self.size if self.size else len(record)  # `char buf[]` ends with the record
            return _text(record[self.offset : end])
        if self.number is None:
            return None
        number = int(self.number.unpack_from(record, self.offset)[0])
        if self.kind == "number":
            return number
        start = (number & 0xFFFF) + (self.offset + self.size if self.kind == "relative" else 0)
        length = number >> 16
        return _text(record[start : start + length]) if start + length <= len(record) else None


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode(errors="replace")


def _field(line: str) -> Field | None:
    match = _FIELD.match(line)
    if match is None:
        return None
    declaration, offset, size = match["declaration"], int(match["offset"]), int(match["size"])
    words = declaration.split()
    name = re.sub(r"\[.*", "", words[-1]).lstrip("*") if words else ""
    if not name:
        return None
    if "__data_loc" in declaration or "__rel_loc" in declaration:
        kind = "relative" if "__rel_loc" in declaration else "located"
        if "char" not in declaration:
            return Field(name, offset, size, "other", None)
        return Field(name, offset, size, kind, struct.Struct("<I") if size == 4 else None)
    if declaration.startswith("unsigned long caller["):
        digits = re.sub(r"[^0-9]", "", declaration)[:9]
        return Field("caller", offset, size // max(int(digits or 1), 1) or 8, "addresses", None)
    if "[" in declaration:
        return Field(name, offset, size, "text" if re.search(r"\bchar\b", declaration) else "other", None)
    code = _CODES.get(size)
    if code is None:
        return Field(name, offset, size, "number", None)
    code = code.lower() if match["signed"] == "1" else code
    return Field(name, offset, size, "number", struct.Struct(f"<{code}"))


def _fields(lines: list[str]) -> dict[str, Field]:
    return {field.name: field for line in lines if (field := _field(line)) is not None}


@dataclass(frozen=True)
class EventFormat:
    """The format of an event: `system/name`, the number that begins its records, and its own fields."""

    system: str
    name: str
    id: int
    fields: tuple[Field, ...]

    def values(self, record: bytes) -> dict[str, Value]:
        """Return name -> value of every number and text in a record."""
        return {field.name: value for field in self.fields if (value := field.value(record)) is not None}


def event_format(path: str, text: str) -> EventFormat:
    """Parse the file `format` of an event such as "sched/sched_switch". Raises RecordError for other text."""
    system, _, name = path.partition("/")
    number, title = _ID.search(text[:MOST_TEXT]), _NAME.search(text[:MOST_TEXT])
    if len(text) > MOST_TEXT or number is None or title is None or title[1] != name:
        raise RecordError(
            f"the record's description of the trace event {path[:60]!r} is damaged, so nothing "
            "can be explained"
        )
    lines = text.split("\nprint fmt:", 1)[0].splitlines()
    fields = [field for line in lines[: MOST_FIELDS + 10] if (field := _field(line)) is not None]
    if (
        not fields
        or len(fields) > MOST_FIELDS
        or any(field.offset + field.size > MOST_RECORD for field in fields)
    ):
        raise RecordError(
            f"the record's description of the trace event {path[:60]!r} is damaged, so nothing "
            "can be explained"
        )
    return EventFormat(
        system, name, int(number[1]), tuple(field for field in fields if not field.name.startswith("common_"))
    )


@dataclass(frozen=True)
class Common:
    """The fields at the beginning of every record. A field is None if this kernel lacks it."""

    type: Field
    flags: Field | None
    preempt_count: Field | None
    pid: Field | None


@dataclass(frozen=True)
class PageLayout:
    """The offsets of a page's time stamp, length and events (events/header_page)."""

    bytes: int
    commit_offset: int
    commit: struct.Struct
    data_offset: int


def page_layout(header_page: str, header_event: str, page_bytes: int) -> PageLayout:
    """Return the layout of a page of `page_bytes`. Raises RecordError for an unknown layout."""
    fields = _fields(header_page[:MOST_TEXT].splitlines())
    commit, data, stamp = fields.get("commit"), fields.get("data"), fields.get("timestamp")
    known = re.search(
        r"type_len\s*:\s*5 bits\s+time_delta\s*:\s*27 bits\s+array\s*:\s*32 bits", header_event[:MOST_TEXT]
    )
    numbers = re.findall(r"== (\d+)", header_event[:MOST_TEXT])
    if (
        commit is None
        or data is None
        or stamp is None
        or (stamp.offset, stamp.size) != (0, 8)
        or commit.size not in {4, 8}
    ):
        raise RecordError("the file header_page of the trace has an unknown format")
    if known is None or numbers != ["29", "30", "31", "28"]:
        raise RecordError("the file header_event of the trace has an unknown format")
    if not data.offset < page_bytes <= MOST_RECORD * 8 or not 8 <= commit.offset <= data.offset - commit.size:
        raise RecordError("the trace is damaged: header_page contradicts page_bytes")
    return PageLayout(
        page_bytes, commit.offset, struct.Struct("<I" if commit.size == 4 else "<Q"), data.offset
    )


@dataclass(frozen=True)
class TraceFormats:
    """All that is needed to read the trace pages of one kernel.

    `line.events`: "system/name" -> its format, as the kernel describes it.
    """

    line: TraceFormatsLine
    page: PageLayout
    common: Common
    events: dict[int, EventFormat]
    symbols: Symbols

    @classmethod
    def read(cls, document: Mapping[str, object]) -> TraceFormats:
        """Read the line `trace_formats` of a stream: clock, events, header_page, header_event, page_bytes,
        cpus and optional symbols. Raises RecordError if it is damaged.
        """
        try:
            line = TraceFormatsLine.model_validate(document, strict=True)
        except ValidationError:
            raise RecordError("the formats of the trace are damaged") from None
        if line.cpus > 65536 or not 0 < len(line.events) <= 4096:
            raise RecordError("the formats of the trace are damaged")
        events = [event_format(path, text) for path, text in line.events.items()]
        common = _fields(next(iter(line.events.values())).splitlines()[:20])
        kind = common.get("common_type")
        if kind is None or kind.number is None:
            raise RecordError("the formats of the trace lack common_type")
        return cls(
            line,
            page_layout(line.header_page, line.header_event, line.page_bytes),
            Common(kind, *(common.get(f"common_{name}") for name in ("flags", "preempt_count", "pid"))),
            {known.id: known for known in events},
            Symbols.read(document.get("symbols")),
        )


@dataclass(frozen=True)
class Symbols:
    """The names of kernel addresses, sorted by address; empty if the target reported none."""

    addresses: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def read(cls, document: object) -> Symbols:
        """Read {"hexadecimal address": "name", ...} or None. Raises RecordError if it is anything else."""
        if document is None:
            return cls((), ())
        try:
            pairs = sorted(
                (int(str(address), 16), str(name))
                for address, name in cast("dict[object, object]", document).items()
            )
        except (AttributeError, ValueError):
            raise RecordError("the symbols of the trace are damaged") from None
        return cls(tuple(address for address, _ in pairs), tuple(name for _, name in pairs))

    def name(self, address: int) -> str | None:
        """Return the function that contains this address; None if the target did not name this address."""
        at = bisect_left(self.addresses, address)
        if at == len(self.addresses) or self.addresses[at] != address:
            return None
        return self.names[at].partition("+0x")[0]

    def from_text(self, offset: int) -> str | None:
        """Return the name at an offset from the beginning of the kernel's text, `_stext`."""
        if "_stext" not in self.names:
            return None
        distance = offset - (1 << 32) if offset >= 1 << 31 else offset
        return self.name(self.addresses[self.names.index("_stext")] + distance)
