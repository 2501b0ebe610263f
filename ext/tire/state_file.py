# SPDX-License-Identifier: MIT
"""Reads and exports a tire's state: positions and velocities of its nodes, as the engine writes them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rtgauge.errors import RecordError
from rtgauge.record.files import clear_errors, whole_file
from rtgauge.record.record_folder import Source, open_source

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

STATE_FILE = "state.tire"
"""The file's name in the folder of a step."""
MAGIC = b"rtgtire\x01"
HEADER = struct.Struct("<8sqq")
COLUMNS = ("x", "y", "vx", "vy")


@dataclass(frozen=True)
class TireState:
    """The state after `steps` steps, with a row (x, y in m; vx, vy in m/s) per node."""

    steps: int
    nodes: npt.NDArray[np.float64]


def read_state(source: Source) -> TireState:
    """Read a state file. Raises RecordError for a foreign, damaged or truncated file."""
    try:
        with open_source(source) as file:
            data = file.read()
    except OSError as error:
        raise RecordError(f"{source} cannot be read: {error.strerror}") from None
    if not data.startswith(MAGIC[:7]):
        raise RecordError(f"{source} is not a file with the state of a tire")
    if len(data) < HEADER.size:
        raise RecordError(f"{source} is cut short: its header has {len(data)} of {HEADER.size} bytes")
    magic, nodes, steps = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise RecordError(f"{source} is in format {magic[7]}, but rtgauge reads {MAGIC[7]}: update rtgauge")
    if nodes < 4 or nodes % 4 or steps < 0 or len(data) - HEADER.size != nodes * len(COLUMNS) * 8:
        state = f"{nodes} nodes after {steps} steps"
        raise RecordError(
            f"{source} is damaged: its header says {state}, which does not fit its {len(data)} bytes"
        )
    import numpy as np  # imported here, because every command imports the probe

    values = np.frombuffer(data, dtype="<f8", offset=HEADER.size).astype(np.float64)
    return TireState(steps, values.reshape(nodes, len(COLUMNS)))


def export_state(source: Source, out: Path) -> None:
    """Write a state file as .csv (node, x, y, vx, vy; all digits), .npy (a row per node) or unchanged.

    Raises RecordError if it is damaged, and the errors of clear_errors if `out` cannot be written.
    """
    import numpy as np

    state = read_state(source)
    with clear_errors(out, out.parent), whole_file(out) as file:
        if out.suffix == ".csv":
            rows = (f"{node},{','.join(map(repr, row))}" for node, row in enumerate(state.nodes.tolist()))
            file.write("\n".join([f"node,{','.join(COLUMNS)}", *rows, ""]).encode())
        elif out.suffix == ".npy":
            np.save(file, state.nodes)
        else:
            file.write(HEADER.pack(MAGIC, len(state.nodes), state.steps))
            file.write(state.nodes.astype("<f8").tobytes())
