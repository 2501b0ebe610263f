# SPDX-License-Identifier: MIT
"""Converts the engine's frame of the moving tire to binary data for a browser (docs/live.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rtgauge.errors import RecordError

if TYPE_CHECKING:
    from rtgauge.record.stream import Frame


class TireFrame(BaseModel):
    """The tire after a step (`frame` in docs/formats/stream.md)."""

    model_config = ConfigDict(strict=True, defer_build=True)

    step: int = Field(ge=1)
    time_ns: int
    every: int = Field(ge=1)
    """The frame has one node in this many."""
    copy_ns: int
    """How long it took to copy the positions."""
    dropped: int = Field(ge=0)
    """How many frames before this one were not sent."""
    late: int = Field(ge=0)
    """How many copies ended after the next release."""
    unit_m: float = Field(gt=0)
    """The unit of the positions, in m."""
    positions: str = Field(pattern="^[A-Za-z0-9+/]*$")
    """Base64 VLQ: each node's x and y in whole units, as differences from the previous node."""


def frame_message(number: int, frame: Frame) -> bytes:
    """Return nine float64: number, step, time (s), every, copy (us), dropped, late, x and y of the origin
    (m). Then x and y of each node relative to the origin, as float32 (m).

    `number` counts received frames from 1. All is little-endian. Raises RecordError for another frame.
    """
    import numpy as np  # imported here, because every command imports the probe

    from rtgauge.record.histogram import decode

    try:
        tire = TireFrame.model_validate(frame.model_extra)
    except ValidationError as error:
        raise RecordError(f"this is not a frame of a tire: {error.errors()[0]['msg']}") from None
    units = decode([tire.positions]).numbers
    positions = np.cumsum(units[: len(units) // 2 * 2].reshape(-1, 2), axis=0, dtype=np.int64) * tire.unit_m
    origin = positions.mean(axis=0) if len(positions) else np.zeros(2)
    times = [tire.time_ns / 1e9, tire.every, tire.copy_ns / 1e3, tire.dropped, tire.late]
    head = [number, tire.step, *times, *origin.tolist()]
    return np.array(head, dtype="<f8").tobytes() + (positions - origin).astype("<f4").tobytes()
