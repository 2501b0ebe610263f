# SPDX-License-Identifier: MIT
"""A frame of what a step simulates as a browser gets it, in binary (docs/live.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rtgauge.record.vlq import decode

if TYPE_CHECKING:
    from rtgauge.record.stream import Frame


def frame_message(number: int, frame: Frame) -> bytes:
    """Nine float64: number, step, time (s), every, copy (us), dropped, late, x and y of the origin (m); then
    x and y of each node from there, float32 (m).

    `number` counts the frames that came, from 1. Little-endian. Raises RecordError if the positions are
    none.
    """
    units, _ = decode([frame.positions])
    positions = np.cumsum(units[: len(units) // 2 * 2].reshape(-1, 2), axis=0, dtype=np.int64) * frame.unit_m
    origin = positions.mean(axis=0) if len(positions) else np.zeros(2)
    head = [
        number,
        frame.step,
        frame.time_ns / 1e9,
        frame.every,
        frame.copy_ns / 1e3,
        frame.dropped,
        frame.late,
        *origin.tolist(),
    ]
    return np.array(head, dtype="<f8").tobytes() + (positions - origin).astype("<f4").tobytes()
