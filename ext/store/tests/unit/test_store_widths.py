# SPDX-License-Identifier: MIT
"""The lists of a store fit narrow terminals, and break no word."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rtgauge.cli.main import app

RECORD = "2026-11-24T10-32-15Z-vm-pairs-85de"
COMMANDS = (
    ("list",),
    ("list", "--series"),
    ("list", "--machines"),
    ("show", "wakeup/latency/idle*"),
    ("show", RECORD),
    ("history",),
    ("history", "wakeup/latency/idle*"),
)


@pytest.fixture(scope="module", name="store")
def the_frozen_store(kept_records: Path) -> Path:
    return kept_records / "store.sqlite"


def printed(store: Path, *words: str, columns: int | None = None) -> str:
    environment = {"COLUMNS": None if columns is None else str(columns)}
    requested = ["store", *words, "--store", store.name]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(store.parent)
        return CliRunner().invoke(app, requested, env=environment).stdout


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_list_fits_and_breaks_no_word(store: Path, words: tuple[str, ...], columns: int) -> None:
    whole, shown = printed(store, *words), printed(store, *words, columns=columns)
    assert max(len(line) for line in shown.splitlines()) <= columns
    known = {
        *whole.split(),
        *(f"{word}." for word in whole.split()),
        *["A", "wider", "terminal", "also", "shows:"],
    }
    known |= {word.rstrip(".,") for word in known} | {f"{word.rstrip('.,')}," for word in known}
    assert {word for word in shown.split() if word not in known} <= {"parameters"}


def test_without_a_series_the_last_values_are_listed(store: Path) -> None:
    heading, *lines = printed(store, "history").splitlines()
    assert heading.split() == ["series", "parameters", "host", "last", "p99", "max", "marks"]
    (cpu,) = [line for line in lines if line.startswith("wakeup/latency/cpu/as-is ")]
    assert cpu.split() == [
        *("wakeup/latency/cpu/as-is", "interval=1ms", "vm", "2026-11-24"),
        *("51.0", "us", "7.81", "ms", "doubtful"),
    ]  # fmt: skip
    assert any("5x longer" in line for line in printed(store, "history", "--quantile", "p99.9").splitlines())


def test_columns_that_do_not_fit_are_named(store: Path) -> None:
    whole, shown = printed(store, "list", columns=200), printed(store, "list", columns=60)
    titles, kept = (text.splitlines()[1].split() for text in (whole, shown))
    (note,) = [line for line in shown.splitlines() if line.startswith("A wider terminal also shows: ")]
    assert set(titles) - set(kept) == set(note.rstrip(".").partition(": ")[2].split(", "))


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize("words", COMMANDS[:3] + COMMANDS[5:6], ids=" ".join)
def test_one_line_names_what_does_not_fit(store: Path, words: tuple[str, ...], columns: int) -> None:
    assert printed(store, *words, columns=columns).count("A wider terminal also shows: ") <= 1
