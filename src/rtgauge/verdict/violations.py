# SPDX-License-Identifier: MIT
"""How many activations of a step broke a bound: what is certain, and what is possible."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rtgauge.record.histogram import OVERFLOW_BIN, lower_ns, signed_bin_of, upper_ns
from rtgauge.record.windows import SLICE

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt
    import polars as pl

    IntArray = npt.NDArray[np.int64]

MOST_STRETCHES = 1_000


@dataclass(frozen=True)
class Violations:
    """Among `activations` (measured and missed), `certain` broke the bound and at most `possible` did
    (certain ones among them).

    They differ where the bound lies inside a bin, where a foreign histogram does not say how late its
    overflow was, or
    if the figures are coarser than 1 ns. `missed` ones are in both: a missed activation breaks any bound.
    """

    activations: int
    certain: int
    possible: int
    missed: int
    by_window: tuple[IntArray, IntArray] | None = field(default=None, compare=False, repr=False)
    """Possible violations and activations of each stretch of time, all series together, in their order; at
    most MOST_STRETCHES of them.
    """


def _without_signs(row: dict[str, Any]) -> dict[str, Any]:
    """A window as of its values without their signs; its least is known only if none was negative."""
    low, high = row["min_ns"], row["max_ns"]
    if low is None or low >= 0:
        return row
    return {
        **row,
        "min_ns": -high if high is not None and high < 0 else None,
        "max_ns": max(high if high is not None else 0, -low),
        "bins": np.abs(row["bins"]),
    }


def count_violations(
    windows: pl.DataFrame, bound_ns: int, *, series: Collection[int] | None = None, resolution_ns: int = 1
) -> Violations:
    """Activations of these series (None: of all) in the measured phase that are later than `bound_ns`.

    Counted window by window, since a window's exact extremes say more than its bins: none is late where the
    maximum is not, all are
    where the minimum is. `resolution_ns`: a figure v of the record means v ... v + resolution - 1. What is
    early by more than the bound breaks it too.
    """
    import polars as pl

    chosen = pl.col("phase") == "measure"
    if series is not None:
        chosen &= pl.col("series").is_in(list(series))
    activations = windows.select("series", "phase", "index", "count", "missed").filter(chosen)
    missed = sum(activations["missed"].to_list())
    count = sum(activations["count"].to_list())
    together = 1 + int(activations["index"].max() or 0) // MOST_STRETCHES  # pyright: ignore[reportArgumentType]
    at = activations["index"].cast(pl.Int64).to_numpy() // together
    of_missed = activations["missed"].cast(pl.Int64).to_numpy()
    every = np.bincount(at, activations["count"].cast(pl.Int64).to_numpy() + of_missed).astype(np.int64)
    broken = np.bincount(at, of_missed).astype(np.int64)
    slack = resolution_ns - 1
    certain = possible = 0
    beyond = (
        pl.col("max_ns").is_null() | (pl.col("max_ns") + slack > bound_ns) | (pl.col("min_ns") < -bound_ns)
    )
    late = chosen & (pl.col("count") > 0) & beyond
    rows = (row for part in windows.iter_slices(SLICE) for row in part.filter(late).iter_rows(named=True))
    for signed in rows:
        row = _without_signs(signed)
        if row["min_ns"] is not None and row["min_ns"] > bound_ns:
            certain += row["count"]
            possible += row["count"]
            broken[row["index"] // together] += row["count"]
            continue
        bins, counts = np.asarray(row["bins"], dtype=np.int64), np.asarray(row["counts"], dtype=np.int64)
        largest = upper_ns(bins) // resolution_ns * resolution_ns + slack
        surely = int(counts[lower_ns(bins) > bound_ns].sum())
        maybe = int(counts[(largest > bound_ns) | (bins >= OVERFLOW_BIN)].sum())
        unplaced = row["count"] - int(counts.sum())
        # The maximum is known: where it is late and its bin does not say so, one is certain.
        top = row["max_ns"]
        if (
            top is not None
            and top > bound_ns
            and (unplaced > 0 or int(lower_ns(signed_bin_of(top))) <= bound_ns)
        ):
            surely += 1
        certain += surely
        possible += max(surely, maybe + unplaced)
        broken[row["index"] // together] += max(surely, maybe + unplaced)
    return Violations(
        count + missed, certain + missed, possible + missed, missed, (broken[every > 0], every[every > 0])
    )
