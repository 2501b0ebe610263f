# SPDX-License-Identifier: MIT
"""Reads what the engine's verb `last-boot` prints: the state of the ring, and the last boot that it kept."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rtgauge.errors import MeasureError, RecordError
from rtgauge.explain.trace.formats import Symbols, TraceFormats
from rtgauge.explain.trace.moment import (
    MOST_CPUS,
    MOST_PAGES,
    EventTable,
    open_page,
    read_pages,
    records,
)
from rtgauge.input_file import json_object
from rtgauge.record.stream import SymbolsLine, TraceFormatsLine

MOST_LINES = 70_000
"""The most lines of output: one for each CPU, and a few more."""


class _Line(BaseModel):
    """A line of the engine. A newer engine may have more members."""

    model_config = ConfigDict(extra="ignore", strict=True, defer_build=True)


class RingState(_Line):
    """The ring now. `armed`: rtgauge has it record this boot. `recorded_before`: something else has, before
    rtgauge could read what the last boot left. `kept`: the file with the last boot.
    """

    type: Literal["last_boot_state"]
    instance: str
    boot_id: str
    armed: bool
    recorded_before: bool
    events: int
    kept: str | None


class Reading(_Line):
    """The boot that read the ring, and when it began."""

    type: Literal["last_boot"]
    instance: str
    info: str
    read_boot_id: str
    release: str
    kernel_version: str
    booted_realtime_ns: int


class Arming(_Line):
    """The boot that armed the ring: two clocks at that time, and its kernel."""

    type: Literal["armed"]
    boot_id: str
    release: str
    kernel_version: str
    monotonic_ns: int
    realtime_ns: int


class _Ring(_Line):
    """The pages of one CPU."""

    type: Literal["ring"]
    cpu: int = Field(ge=0, lt=MOST_CPUS)
    last_ns: int = Field(ge=0)
    pages_left_out: int = Field(ge=0)
    pages: list[str] = Field(max_length=MOST_PAGES)


@dataclass(frozen=True)
class KeptBoot:
    """The last boot as the ring shows it. `armed`: None if rtgauge had not armed the ring. `left_out`: the
    CPUs with more events than the engine keeps. `lost`: the CPUs whose ring has nothing. `damaged`: how many
    pages are unreadable. `pages`: CPU -> the readable ones. `symbol_names`: address -> name, as the engine
    writes them.
    """

    reading: Reading
    armed: Arming | None
    table: EventTable
    symbols: Symbols
    left_out: tuple[int, ...]
    lost: tuple[int, ...]
    damaged: int
    pages: Mapping[int, Sequence[bytes]]
    formats: TraceFormatsLine
    symbol_names: dict[str, str]


def parse(output: bytes) -> tuple[RingState, KeptBoot | None]:
    """Parse the output of `last-boot`.

    Raises MeasureError with the engine's error, RecordError if the output is damaged.
    """
    lines = output.split(b"\n", MOST_LINES)
    documents = [document for line in lines[:MOST_LINES] if (document := json_object(line)) is not None]
    error = next((document for document in documents if document.get("type") == "error"), None)
    if error is not None:
        raise MeasureError(_error_words(error))
    first = [document for document in documents if document.get("type") == "last_boot_state"]
    if not first:
        raise RecordError("the engine's answer about the last boot is damaged; update rtgauge on the target")
    try:
        state = RingState.model_validate(first[0])
        return state, _kept(documents) if state.kept is not None else None
    except (ValidationError, ValueError):
        raise RecordError(
            "what was kept of the last boot is damaged; remove it from /var/lib/rtgauge/last-boot"
        ) from None


def _error_words(error: Mapping[str, Any]) -> str:
    detail = error.get("detail")
    remedy = cast("dict[str, Any]", detail).get("remedy") if isinstance(detail, dict) else None
    message = str(error.get("message", "the engine's command last-boot failed"))
    return f"{message}; {remedy}" if isinstance(remedy, str) else message


def _kept(documents: list[dict[str, Any]]) -> KeptBoot:
    def first(kind: str) -> dict[str, Any]:
        nothing: dict[str, Any] = {}
        return next((document for document in documents if document.get("type") == kind), nothing)

    formats = TraceFormats.read(first("trace_formats") | {"symbols": first("symbols").get("symbols")})
    rings = [_Ring.model_validate(document) for document in documents if document.get("type") == "ring"]
    if sum(len(ring.pages) for ring in rings) > MOST_PAGES:
        raise ValueError("too many pages")
    pages = {ring.cpu: [b64decode(page, validate=True) for page in ring.pages] for ring in rings}
    whole = {cpu: [page for page in raws if _is_whole(formats, page)] for cpu, raws in pages.items()}
    armed = first("armed")
    named = SymbolsLine.model_validate({"type": "symbols", "symbols": first("symbols").get("symbols") or {}})
    return KeptBoot(
        Reading.model_validate(first("last_boot")),
        Arming.model_validate(armed) if armed else None,
        read_pages(formats, whole),
        formats.symbols,
        tuple(ring.cpu for ring in rings if ring.pages_left_out),
        tuple(ring.cpu for ring in rings if not ring.pages),
        sum(map(len, pages.values())) - sum(map(len, whole.values())),
        whole,
        TraceFormatsLine.model_validate(first("trace_formats")),
        named.symbols,
    )


def _is_whole(formats: TraceFormats, raw: bytes) -> bool:
    """Return whether a page is readable. The machine may have died while it wrote one."""
    try:
        for _ in records(open_page(raw, formats.page)):
            pass
    except RecordError:
        return False
    return True
