# SPDX-License-Identifier: MIT
"""Files of raw samples, as the engine writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rtgauge.record.samples import SAMPLE, SamplesHeader

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt


def write_samples(path: Path, header: SamplesHeader, samples: npt.ArrayLike) -> None:
    """Values, or (time, value) rows, in ns."""
    path.write_bytes(header.pack() + np.asarray(samples, dtype=SAMPLE).tobytes())
