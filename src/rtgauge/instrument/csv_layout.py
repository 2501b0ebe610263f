# SPDX-License-Identifier: MIT
"""Finds the columns in a CSV file of an oscilloscope or logic analyser, from numbers and lines above them.

Every maker has a different form. Tektronix puts the settings next to the first rows of data, or above them.
Rigol numbers the samples, and gives start and increment in the second row. Keysight names channels by
numbers, with the units below. Saleae and sigrok write levels. In countries with a decimal comma, semicolons
separate the columns. The tests have an example of each form.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field

from rtgauge.errors import InputError

SEPARATORS = ((",", "."), (";", "."), (";", ","), ("\t", "."), ("\t", ","))
TIME_UNITS_NS = {
    "s": 1e9,
    "sec": 1e9,
    "second": 1e9,
    "seconds": 1e9,
    "ms": 1e6,
    "milliseconds": 1e6,
    "us": 1e3,
    "µs": 1e3,
    "μs": 1e3,
    "microseconds": 1e3,
    "ns": 1.0,
    "nanoseconds": 1.0,
    "ps": 1e-3,
    "picoseconds": 1e-3,
    "fs": 1e-6,
    "femtoseconds": 1e-6,
}
VOLTS = {"v": 1.0, "volt": 1.0, "volts": 1.0, "mv": 1e-3, "uv": 1e-6, "µv": 1e-6, "kv": 1e3}
FREQUENCIES = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9}
# The quantifiers are possessive (no backtracking), so that the time is proportional to a field's length.
NUMBER = r"[+-]?(?:[0-9]++[.,]?[0-9]*+|[.,][0-9]++)(?:[eE][+-]?[0-9]++)?"
_NUMBER = re.compile(NUMBER)
_QUANTITY = re.compile(rf"({NUMBER})\s*+([A-Za-zµμ]*+)")
_T0_TINC = re.compile(rf"\b(t0|tInc)\s*+=\s*+({NUMBER})")
_TIME_NAMES = {
    "x",
    "x-axis",
    "in s",
    "second",
    "seconds",
    "milliseconds",
    "microseconds",
    "nanoseconds",
    "picoseconds",
    "femtoseconds",
}
_TIME_WORD = re.compile(r"(?:time|zeit|temps)\b", re.IGNORECASE)
_STYLES = {
    "sigrok": ("sigrok",),
    "Tektronix": ("tektronix", "model,mso", "model,dpo", "model,mdo", "model,tds", "model,tbs"),
    "Rigol": ("start,increment", "x(ch1)", "tinc", "ch1v", "ch2v", "ch3v", "ch4v"),
    "Keysight": ("x-axis", "xinc:"),
    "Saleae": ("time[s],", "time [s],"),
    "PicoScope": ("time,channel a",),
}
"""Maker -> lower-case text above the data that only this maker's files have."""
_INCREMENT_KEYS = ("sample interval", "increment", "xinc", "x increment", "tinc")
_START_KEYS = ("start", "xorg", "t0")
# How much of a file is read to find the layout.
HEAD_BYTES = 256 * 1024
MIN_DATA_LINES = 3
LEAST_SHARE = 0.9  # share of the lines from the first line of numbers on that are lines of numbers
MOST_COLUMNS = 4096
"""The limit is needed because each column takes memory. A mixed-signal oscilloscope has some tens of columns.
"""
MOST_NAME = 100
"""Maximum characters of a channel's name."""


@dataclass(frozen=True)
class Column:
    """A channel: its place in a line, its name, and the factor that converts numbers to volts or levels."""

    place: int
    name: str
    scale: float = 1.0


@dataclass(frozen=True)
class CsvLayout:
    """The layout of a file. A row's time is column `time_place` times `time_scale_ns`, or `start_ns` plus
    `increment_ns` for each row before it.
    """

    separator: str
    decimal: str
    encoding: str
    skip_lines: int
    fields: int
    channels: list[Column]
    time_place: int | None
    time_scale_ns: float = 1e9
    start_ns: float = 0.0
    increment_ns: float | None = None
    logic: bool = False
    spaces: bool = False
    quoted: bool = False
    style: str = ""


@dataclass
class _Head:
    separator: str
    decimal: str
    rows: list[list[str]]  # all lines
    data: list[list[str]]  # lines of numbers
    first: int
    places: list[int]
    keys: dict[str, str] = field(default_factory=dict[str, str])


def _clean(text: str) -> str:
    return text.strip().strip('"').strip()


def _is_number(text: str, decimal: str) -> bool:
    text = _clean(text)
    other = "," if decimal == "." else "."
    return other not in text and _NUMBER.fullmatch(text) is not None


def number(text: str, decimal: str = ".") -> float:
    """Parse the number in a field."""
    return float(_clean(text).replace(decimal, "."))


def _find_data(lines: list[str], separator: str, decimal: str) -> _Head | None:
    """Find the lines that have numbers in the same places as the last line of the head."""
    rows = [line.split(separator) for line in lines]
    last = rows[-1]
    places = [i for i, text in enumerate(last) if _is_number(text, decimal)]
    # If a field is neither a number nor empty, the columns are not columns of numbers.
    if not places or any(_clean(text) for i, text in enumerate(last) if i not in places):
        return None
    if len(last) > MOST_COLUMNS:
        raise InputError(f"a line has {len(last)} fields, but rtgauge reads at most {MOST_COLUMNS}")
    fits = [len(row) == len(last) and all(_is_number(row[i], decimal) for i in places) for row in rows]
    later = [0, *itertools.accumulate(reversed(fits))]  # later[n]: how many of the last n lines fit
    # The data begins at the first rows of numbers. A row among these may be damaged.
    for first in range(len(rows) - MIN_DATA_LINES + 1):
        if all(fits[first : first + MIN_DATA_LINES]) and later[len(rows) - first] >= LEAST_SHARE * (
            len(rows) - first
        ):
            data = [row for row, fit in zip(rows[first:], fits[first:], strict=True) if fit]
            return _Head(separator, decimal, rows, data, first, places)
    return None


def _keys(head: _Head, lines: list[str]) -> dict[str, str]:
    keys: dict[str, str] = {}
    above = head.rows[: head.first]
    # Older Tektronix files have the settings in the first rows, to the left of the data.
    beside = [row[: head.places[0]] for row in head.data if head.places[0] >= 2 and _clean(row[0])]
    for row in above + beside:
        texts = [_clean(text) for text in row]
        if len(texts) >= 2 and texts[0] and texts[1]:
            keys.setdefault(texts[0].rstrip(":").lower(), texts[1])
    for line in lines[: head.first]:
        if (setting := _setting(line)) is not None:
            keys.setdefault(*setting)
        for match in _T0_TINC.finditer(line):
            keys.setdefault(match[1].lower(), match[2])
    return keys


def _setting(line: str) -> tuple[str, str] | None:
    """Return (name in lower case, number with unit) from `; Samplerate: 10 MHz` or `Increment = 1e-6`; None
    for other lines.
    """
    at = min((place for place in (line.find(":"), line.find("=")) if place >= 0), default=-1)
    if at < 0:
        return None
    name = line[:at].removeprefix(";").removeprefix("#").strip()
    value = _QUANTITY.match(line[at + 1 :].strip())
    if value is None or len(name) < 2 or not name.replace(" ", "").isalpha() or not name.isascii():
        return None
    return name.lower(), value[0].strip()


def _is_time_name(name: str) -> bool:
    return name.lower() in _TIME_NAMES or _TIME_WORD.match(name) is not None


def _name_and_unit(name: str) -> tuple[str, str] | None:
    """Split a heading such as `CH1 (V)`, `Time [s]` or `Time in ms`; None if it has no such unit."""
    unit = ""
    if name.endswith((")", "]")):
        at = max(name.rfind("("), name.rfind("["))
        before, unit = name[: max(at, 0)], name[at + 1 : -1] if at >= 0 else ""
    else:
        before, _, unit = name.rpartition(" in ")
    unit = unit.strip().lower()
    return (before.strip() or name, unit) if unit in TIME_UNITS_NS or unit in VOLTS else None


def _names_and_units(head: _Head) -> tuple[list[str], list[str]]:
    """Return the names and units of the fields in a data line; empty if there are none."""
    width = len(head.rows[-1])
    names, units = [""] * width, [""] * width
    texts = [[_clean(text) for text in row] for row in head.rows[: head.first]]
    while texts and not any(texts[-1]):
        texts.pop()
    candidates = [
        row
        for row in texts[-2:]
        if len(row) >= max(head.places) + 1 and not row[0].startswith(";") and row[head.places[0]]
    ]
    # Rows like `Record Length,2500` are settings, not names.
    candidates = [
        row
        for row in candidates
        if not (
            len(row) == 2
            and _NUMBER.fullmatch(row[1])
            and not _NUMBER.fullmatch(row[0])
            and not _is_time_name(row[0])
        )
    ]
    if not candidates:
        return names, units
    row = candidates[0]
    named = row
    if len(candidates) == 2:
        unit_row = [text.strip("()[]").lower() for text in candidates[1]]
        known = TIME_UNITS_NS.keys() | VOLTS.keys() | {"sequence", "value", "volt"}
        if any(unit_row[i] in known for i in head.places if i < len(unit_row)):
            units = (unit_row + [""] * width)[:width]
        else:
            named = candidates[1]
    names = (named + [""] * width)[:width]
    for i, name in enumerate(names):
        if (parts := _name_and_unit(name)) is not None:
            names[i], units[i] = parts
        elif name.startswith("CH") and name.endswith("V") and name[2:-1].isdecimal():
            names[i], units[i] = name[:-1], "v"
        elif not units[i] and name.lower() in TIME_UNITS_NS:
            units[i] = name.lower()
    return names, units


def _duration_ns(text: str, default: str = "s") -> float:
    match = _QUANTITY.match(text.replace("s,", "s"))
    if match is None:
        raise ValueError(text)
    return float(match[1].replace(",", ".")) * TIME_UNITS_NS[(match[2] or default).lower()]


def _increment_ns(head: _Head) -> float | None:
    for key in _INCREMENT_KEYS:
        if key in head.keys:
            try:
                return _duration_ns(head.keys[key].split(":")[-1])
            except (ValueError, KeyError):
                continue
    for key in ("samplerate", "sample rate"):
        match = _QUANTITY.match(head.keys.get(key, ""))
        if (
            match
            and (
                rate_hz := float(match[1].replace(",", "."))
                * FREQUENCIES.get((match[2] or "Hz").lower(), 1.0)
            )
            > 0
        ):
            return 1e9 / rate_hz
    return None


def _style(head: _Head, names: list[str]) -> str:
    text = "\n".join(head.separator.join(row) for row in head.rows[: max(head.first, 3)]).lower()
    for style, words in _STYLES.items():
        if any(word in text for word in words):
            return style
    if "record length," in text and "sample interval" in text:
        return "Tektronix"
    return "unknown maker" if any(names) else "no header"


def decode_head(data: bytes) -> tuple[str, str]:
    """Return (text, encoding) of the beginning of a file. Raises InputError for binary files."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError("the file is UTF-16; save it as UTF-8 or plain text")
    if b"\0" in data:
        raise InputError("the file is binary; export it as CSV or VCD")
    try:
        return data.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError as error:
        # A character cut off at the end of the head does not mean another encoding.
        if error.start >= len(data) - 4:
            return data[: error.start].decode("utf-8-sig"), "utf-8"
        return data.decode("latin-1"), "latin-1"


@dataclass(frozen=True)
class _Sigrok:
    """The content of libsigrok's comments, and its way of writing times (src/output/csv.c in libsigrok).

    Without channel labels, a channel's heading is missing, "logic" or the unit, and a comment has the names.
    Times are multiples of the sample period, which is truncated to a whole number of ns (or ps, us, ms,
    depending on the rate): 41 ns per sample at 24 MHz. `stretch` corrects the times.
    """

    names: list[str]
    time_unit: str = ""
    stretch: float = 1.0

    @classmethod
    def of(cls, head: _Head) -> _Sigrok | None:
        """Parse the comments; None if libsigrok did not write the file."""
        comments = [head.separator.join(row) for row in head.rows[: head.first] if row[0].startswith(";")]
        if not any("generated by libsigrok" in line or "generated by sigrok" in line for line in comments):
            return None
        listed = next((line.partition("):")[2] for line in comments if line.startswith("; Channels (")), "")
        channel_names = [_clean(name)[:MOST_NAME] for name in listed.split(",") if _clean(name)]
        rate_hz = next((hz for line in comments if (hz := _rate_hz(line)) is not None), None)
        if rate_hz is None or "libsigrok4DSL" in comments[0]:
            return cls(channel_names)
        whole, unit = 1, 0
        while whole < rate_hz:
            whole, unit = whole * 1000, unit + 1
        if unit not in range(1, len(_SIGROK_UNITS)):
            return cls(channel_names)
        return cls(channel_names, _SIGROK_UNITS[unit], whole / rate_hz / (whole // rate_hz))

    def channels(self, names: list[str], units: list[str], places: list[int]) -> tuple[list[str], list[str]]:
        """Return names and units of all fields. If headings are units, the names come from the comment."""
        headings = [names[place].lower() for place in places]
        if len(self.names) != len(places) or not all(
            heading in {"", "logic"} or heading in VOLTS for heading in headings
        ):
            return names, units
        new = dict(zip(places, self.names, strict=True))
        volts = {place: heading for place, heading in zip(places, headings, strict=True) if heading in VOLTS}
        return [new.get(i, name) for i, name in enumerate(names)], [
            volts.get(i, unit) for i, unit in enumerate(units)
        ]


_SIGROK_UNITS = ("samples", "ms", "us", "ns", "ps", "fs")


def _rate_hz(comment: str) -> int | None:
    """Return the samples per second in `; Samplerate: 24 MHz`; None for other lines or a fractional rate."""
    setting = _setting(comment)
    value = (
        None
        if setting is None or setting[0] not in {"samplerate", "sample rate"}
        else _QUANTITY.fullmatch(setting[1])
    )
    if value is None or (value[2] or "Hz").lower() not in FREQUENCIES:
        return None
    rate_hz = float(value[1].replace(",", ".")) * FREQUENCIES[(value[2] or "Hz").lower()]
    return round(rate_hz) if 1 < rate_hz < 1e15 and abs(rate_hz - round(rate_hz)) < 1e-6 * rate_hz else None


def find_layout(
    head_bytes: bytes, *, whole: bool, time_unit: str | None = None, sample_rate_hz: float | None = None
) -> CsvLayout:
    """Find the layout from the first HEAD_BYTES of a file. `whole`: whether this is the whole file.

    `time_unit` and `sample_rate_hz` are for files that lack them. Raises InputError with the missing fact.
    """
    text, encoding = decode_head(head_bytes)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not whole or (lines and not lines[-1].strip()):
        lines.pop()
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) < MIN_DATA_LINES:
        raise InputError("the file has no rows of numbers")
    heads = [head for separator, decimal in SEPARATORS if (head := _find_data(lines, separator, decimal))]
    if not heads:
        raise InputError(
            "the file has no columns of numbers; give a CSV file from an oscilloscope or a logic analyser"
        )
    head = max(heads, key=lambda found: (len(found.places), found.decimal == "."))
    head.keys = _keys(head, lines)
    names, units = _names_and_units(head)
    sigrok = _Sigrok.of(head)
    increment_ns = 1e9 / sample_rate_hz if sample_rate_hz else _increment_ns(head)
    start_ns, increment_ns = _start_and_increment(head, increment_ns)

    time_place: int | None = None
    counted = any("sequence" in unit for unit in units)
    for i in head.places:
        if _is_time_name(names[i]):
            time_place = i
            break
    has_names = any(names[i] for i in head.places)
    if time_place is None and not has_names and len(head.places) >= 2 and _rises(head, head.places[0]):
        time_place = head.places[0]
    if time_place is None and increment_ns is None:
        raise InputError("the file has neither a column of times nor a sample rate; give the sample rate")
    if sigrok is not None:
        names, units = sigrok.channels(names, units, [place for place in head.places if place != time_place])
    channels = [
        Column(i, names[i] or f"CH{number}", VOLTS.get(units[i], 1.0))
        for number, i in enumerate((p for p in head.places if p != time_place), start=1)
    ]
    if not channels:
        raise InputError("the file has a column of times, but no channel")
    scale_ns = 1e9
    if time_place is not None and not counted:
        unit = time_unit or units[time_place] or ("" if sigrok is None else sigrok.time_unit)
        if not unit and sigrok is not None:
            raise InputError(
                "sigrok's file does not say in which unit its times are; give the time unit (s, ms, us, ns)"
            )
        if unit and unit.lower() not in TIME_UNITS_NS:
            raise InputError(f"'{unit}' is not a unit of time; give s, ms, us, ns, ps or fs")
        scale_ns = TIME_UNITS_NS[unit.lower()] if unit else 1e9
        if sigrok is not None and not time_unit:
            scale_ns *= sigrok.stretch
    sample = head.data
    return CsvLayout(
        separator=head.separator,
        decimal=head.decimal,
        encoding=encoding,
        skip_lines=head.first,
        fields=len(head.rows[-1]),
        channels=channels,
        # Times with few digits repeat if samples are close, whereas the header's interval is exact. But files
        # of levels have rows only for changes of the level.
        time_place=None
        if counted or (increment_ns is not None and time_place is not None and not _rises(head, time_place))
        else time_place,
        time_scale_ns=scale_ns,
        start_ns=start_ns
        if counted or time_place is None
        else number(sample[0][time_place], head.decimal) * scale_ns,
        increment_ns=increment_ns,
        logic=all(_clean(row[c.place]) in {"0", "1"} for row in sample for c in channels),
        spaces=any(text != text.strip() for row in sample[:50] for text in row[:-1])
        or any(row[-1].strip("\r\n ") != row[-1] for row in sample[:50]),
        quoted=any('"' in text for row in sample[:50] for text in row),
        style=_style(head, names),
    )


def _start_and_increment(head: _Head, increment_ns: float | None) -> tuple[float, float | None]:
    """Return start and increment, from below their names if these are columns (Rigol), or from settings."""
    start_ns = 0.0
    for key in _START_KEYS:
        if key in head.keys:
            try:
                start_ns = _duration_ns(head.keys[key])
            except (ValueError, KeyError):
                continue
            break
    for i in range(max(0, head.first - 1)):
        row = [_clean(text).lower() for text in head.rows[i]]
        if "start" in row and "increment" in row:
            values = head.rows[i + 1]
            places = row.index("start"), row.index("increment")
            if max(places) < len(values) and all(_is_number(values[place], head.decimal) for place in places):
                start_ns, increment_ns = (number(values[place], head.decimal) * 1e9 for place in places)
    return start_ns, increment_ns


def _rises(head: _Head, place: int) -> bool:
    values = [number(row[place], head.decimal) for row in head.data]
    return all(later > earlier for earlier, later in itertools.pairwise(values))
