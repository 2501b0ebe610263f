# SPDX-License-Identifier: MIT
"""Reads the JSON of cyclictest --json, file_version 1.

Its keys `cmdline:` and `rt_test_version:` carry a colon; a `resolution_in_ns` of 0 means us; it names no overflow: that is the
cycles that are in no bin.
"""

from __future__ import annotations

import json
from datetime import UTC
from email.utils import parsedate_to_datetime
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rtgauge.errors import InputError
from rtgauge.importers.cyclictest import Measurement, Thread, histogram_limit, interval_us, priority

Count = Annotated[int, Field(ge=0, lt=2**62, strict=True)]
Key = Annotated[int, Field(ge=0, lt=2**62)]


class _Thread(BaseModel):
    histogram: dict[Key, Count] = Field(default_factory=dict[int, int])
    cycles: Count
    min: Annotated[int, Field(gt=-(2**62), lt=2**62, strict=True)]
    max: Annotated[int, Field(gt=-(2**62), lt=2**62, strict=True)]
    avg: Annotated[float, Field(allow_inf_nan=False, gt=-1e18, lt=1e18)]
    cpu: int = -1


class _File(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    file_version: Annotated[int, Field(strict=True)]
    command: str = Field(default="", alias="cmdline:")
    version: str | None = Field(default=None, alias="rt_test_version:")
    command_right: str | None = Field(default=None, alias="cmdline")
    version_right: str | None = Field(default=None, alias="rt_test_version")
    start_time: str | None = None
    end_time: str | None = None
    sysinfo: dict[str, str | int] = Field(default_factory=dict[str, "str | int"])
    resolution_in_ns: Annotated[int, Field(ge=0, le=1)]
    thread: dict[Annotated[int, Field(ge=0, lt=100_000)], _Thread] = Field(min_length=1)


def _time(text: str | None) -> str | None:
    try:
        return None if text is None else f"{parsedate_to_datetime(text).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError):
        return None


def looks_like_json(data: str) -> bool:
    """Whether a text is meant to be JSON."""
    return data.lstrip().startswith("{")


def parse_json(data: str, name: str) -> Measurement:
    """The measurement in the JSON `data` of the file `name`. Raises InputError, one line, where it is none of cyclictest or a damaged one."""
    try:
        raw: Any = json.loads(data)
    except (ValueError, RecursionError):
        raise InputError(f"{name} is not JSON, though it begins like it: is it cut short?") from None
    version = raw.get("file_version") if isinstance(raw, dict) else None
    if version != 1:
        raise InputError(f"{name} is not an output of cyclictest --json with file_version 1 (it has {version!r:.40})")
    try:
        file = _File.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])[:80]
        raise InputError(f"{name} is a damaged output of cyclictest --json ({where}: {first['msg']})") from None
    command = file.command or file.command_right or ""
    limit = histogram_limit(command)
    threads: list[Thread] = []
    for number, thread in sorted(file.thread.items()):
        placed = sum(thread.histogram.values())
        if placed > thread.cycles:
            raise InputError(f"{name} is a damaged output of cyclictest --json (thread {number}: {placed} samples in bins, {thread.cycles} cycles)")
        known = thread.cycles > 0
        threads.append(
            Thread(
                number=number,
                cpu=thread.cpu if thread.cpu >= 0 else None,
                histogram={value: count for value, count in sorted(thread.histogram.items()) if count},
                cycles=thread.cycles,
                overflow=thread.cycles - placed,
                limit=limit if limit is not None else max(thread.histogram) + 1 if thread.histogram else None,
                minimum=thread.min if known else None,
                maximum=thread.max if known else None,
                average=Fraction(str(thread.avg)) if known else None,
                interval_us=interval_us(command, number) if command else None,
                priority=priority(command),
            )
        )
    return Measurement(
        threads=threads,
        unit_ns=1 if file.resolution_in_ns == 1 else 1000,
        source=name,
        unit_known=True,
        version=file.version or file.version_right,
        command=command or None,
        started=_time(file.start_time),
        ended=_time(file.end_time),
        system=file.sysinfo,
        average_is_cut=False,
    )
