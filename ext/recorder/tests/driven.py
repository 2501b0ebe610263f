# SPDX-License-Identifier: MIT
"""A recording driven by a clock that goes on only when the test says so, and what its engine would send."""

from __future__ import annotations

import base64
import json
import random
from typing import TYPE_CHECKING, Any

import numpy as np

from rtgauge.record.histogram import add_bins, bin_of, encode_bins
from rtgauge_ext.recorder.clocks import Times
from rtgauge_ext.recorder.folder import RecorderFolder, Settings
from rtgauge_ext.recorder.recording import Recording

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge_ext.recorder.recording import Taker

SECOND = 10**9
DAY = 86_400 * SECOND
START = Times(1000 * SECOND, 1000 * SECOND, 1_800_000_000 * SECOND)
MIB = 1 << 20
METRICS = ("latency", "response", "execution", "period")


class DrivenClock:
    """A clock that goes on only when the test says so."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> Times:
        return self.now

    def pass_ns(self, ns: int, *, asleep_ns: int = 0, set_ns: int = 0) -> None:
        awake = Times(*(each + ns for each in self.now))
        self.now = Times(awake.monotonic_ns, awake.boot_ns + asleep_ns, awake.wall_ns + asleep_ns + set_ns)


class Names:
    """A namer that reads the culprit from the moment."""

    allowed = True

    def may(self) -> bool:
        return self.allowed

    def turn(self) -> None:
        pass

    def name(self, _source: object, moment: dict[str, Any]) -> str:
        return str(moment["culprit"])


HELLO: dict[str, Any] = {
    "type": "hello", "version": 2, "engine": "0.1.0", "probe": "watch", "pid": 1, "boot_id": "b",
    "kernel": "6.12", "machine": "x86_64", "capabilities": [], "parameters": {"pid": 7, "warm_up_ns": 0},
}  # fmt: skip


def begin(recording: Recording, clock: DrivenClock, boot: str = "b") -> Taker:
    taker = recording.begin()
    lines = [HELLO | {"boot_id": boot}]
    lines += [
        {"type": "series", "series": n, "metric": metric, "unit": "ns", "labels": {"task": "control"}}
        for n, metric in enumerate(METRICS)
    ]
    lines += [{"type": "started", "series": 0, "start_ns": clock.now.monotonic_ns}]
    for line in lines:
        taker.take(json.dumps(line).encode())
    return taker


def figures_of(values: np.ndarray[Any, Any]) -> dict[str, Any]:
    bins, counts = add_bins(bin_of(values), np.ones(len(values), dtype=np.int64))
    return {
        "count": len(values), "missed": 0, "min_ns": int(values.min()), "max_ns": int(values.max()),
        "sum_ns": int(values.sum()), "m2_ns2": float(((values - values.mean()) ** 2).sum()),
        "bins": encode_bins(bins, counts), "missed_bins": "",
    }  # fmt: skip


def window(clock: DrivenClock, length_ns: int, figures: dict[str, Any], series: int = 0) -> bytes:
    line = {
        "type": "window", "series": series, "phase": "measure", "index": 0,
        "start_ns": clock.now.monotonic_ns - length_ns, "end_ns": clock.now.monotonic_ns, **figures,
    }  # fmt: skip
    return json.dumps(line, separators=(",", ":")).encode()


def moment(clock: DrivenClock, culprit: str, latency_ns: int, size: int = 0) -> bytes:
    page = base64.b64encode(random.Random(latency_ns).randbytes(size)).decode()  # as if compressed
    line = {
        "type": "moment", "number": 1, "cpu": 0, "series": 0, "thread": 7, "kind": "above",
        "release_ns": clock.now.monotonic_ns, "end_ns": clock.now.monotonic_ns + latency_ns,
        "latency_ns": latency_ns, "copy_ns": 1, "lost": {}, "pages": {"0": [page]}, "left_out": [],
        "culprit": culprit,
    }  # fmt: skip
    return json.dumps(line, separators=(",", ":")).encode()


def folder_of(path: Path, keep: int = 50 * MIB) -> RecorderFolder:
    return RecorderFolder.create(
        path, Settings(program="--program control", keep_bytes=keep, command=["rtgauge"], parameters={})
    )


def recording_of(folder: RecorderFolder, clock: DrivenClock, **more: Any) -> Recording:
    return Recording(folder, clock, Names(), lambda: b"", **more)  # pyright: ignore[reportArgumentType]
