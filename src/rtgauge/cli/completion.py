# SPDX-License-Identifier: MIT
"""Completes names in the shell. Each function returns the words that can follow the typed beginning."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def _starting(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def _files(incomplete: str, pattern: str = "*") -> list[str]:
    """Return files and folders whose path begins so."""
    typed = Path(incomplete)
    folder = typed if incomplete.endswith("/") else typed.parent
    try:
        paths = sorted(path for path in folder.glob(pattern) if not path.name.startswith("."))
    except OSError:
        return []
    return _starting(incomplete, (f"{path}/" if path.is_dir() else str(path) for path in paths))


def plans(incomplete: str) -> list[str]:
    """Complete a preset, a study, or a file."""
    from rtgauge.plan.make_plan import presets
    from rtgauge.study.study_registry import studies

    return _starting(incomplete, (*presets(), *studies())) + _files(incomplete)


def loads(incomplete: str) -> list[str]:
    """Complete the last load of a list with commas."""
    from rtgauge.load.load_registry import names

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _starting(last, names())]


def marks(incomplete: str) -> list[str]:
    """Complete the name of a mark."""
    from rtgauge.record.marks import mark_kinds

    return _starting(incomplete, sorted(mark_kinds()))


def records(incomplete: str) -> list[str]:
    """Complete `latest`, a record in rtgauge-runs, or a folder."""
    from rtgauge.record.reader import LATEST, record_folders
    from rtgauge.record.records_folder import RECORDS

    known = [folder.name for folder in record_folders(RECORDS)] if RECORDS.is_dir() else []
    return _starting(incomplete, (LATEST, *sorted(known, reverse=True))) + _files(incomplete)
