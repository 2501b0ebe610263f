# SPDX-License-Identifier: MIT
"""The disk is full: it is said, finished steps stay, and the run goes on when there is room again."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.test_resume import hashes
from tests.support.archives import own_archive
from tests.support.cli import SHORT, error_line, good, rtgauge
from tests.support.real_record import document
from tests.support.small_disk import check_every_size

if TYPE_CHECKING:
    pass

pytestmark = [pytest.mark.engine, pytest.mark.root]


def grow(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)


def test_raw_samples_do_not_fit(small_disk: Path, tmp_path: Path) -> None:
    plan = tmp_path / "p.toml"
    plan.write_text(
        'order = "as-written"\n[defaults]\nwarm-up = "100ms"\n[[step]]\nduration = '
        '"300ms"\n[[step]]\nduration = "3s"\ninterval = "50us"\nsamples = true\n'
    )
    completed = rtgauge("run", plan, "--out", small_disk)
    line = error_line(completed, 3)
    assert "disk" in line
    assert "full" in line
    (record,) = small_disk.iterdir()
    assert record.name.endswith(".partial")
    assert f"rtgauge resume {record}" in line
    assert document((record / "run.json").read_text())["steps"] == ["01-wakeup-idle"]
    assert [entry.name for entry in (record / "steps").iterdir()] == ["01-wakeup-idle"]
    before = hashes(record / "steps" / "01-wakeup-idle")
    grow(small_disk)
    good(rtgauge("resume", record))
    (whole,) = small_disk.iterdir()
    assert hashes(whole / "steps" / "01-wakeup-idle") == before
    assert document((whole / "run.json").read_text())["steps"] == ["01-wakeup-idle", "02-wakeup-idle"]


def test_a_step_does_not_fit(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(bytes(200 * 1024))
    line = error_line(
        rtgauge("run", "--load", "idle", "--duration", "300ms", "--repeats", 4, *SHORT, "--out", small_disk),
        3,
    )
    assert "disk is full" in line
    (record,) = small_disk.glob("*.partial")
    assert f"rtgauge resume {record}" in line
    before = hashes(record / "steps")
    grow(small_disk)
    content = document(good(rtgauge("resume", record, "--json")).stdout)
    assert len(content["steps"]) == 4
    assert before.items() <= hashes(Path(content["record"]) / "steps").items()


def test_nothing_fits(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(bytes(299 * 1024))
    assert "disk is full" in error_line(
        rtgauge("run", "--load", "idle", "--duration", "300ms", "--out", small_disk), 3
    )


def test_only_the_page_does_not_fit(small_disk: Path) -> None:
    """The numbers are kept, and the line says how the page is made again."""
    completed = rtgauge("run", "--load", "idle", "--duration", "300ms", *SHORT, "--out", small_disk)
    line = error_line(completed, 3)
    (record,) = small_disk.iterdir()
    assert "page" in line
    assert document((record / "run.json").read_text())["state"] == "complete"
    assert "CPU " in completed.stdout
    assert not (record / "report.html").exists()
    good(rtgauge("show", record))


def test_the_samples_of_a_probe_do_not_fit(small_disk: Path) -> None:
    completed = rtgauge(
        "probe",
        "wakeup",
        "--interval",
        "50us",
        "--duration",
        "3s",
        "--warm-up",
        "0",
        "--samples",
        small_disk / "s.csv",
    )
    line = error_line(completed, 3)
    assert "full" in line
    assert str(small_disk) in line
    assert list(small_disk.iterdir()) == []


def test_the_samples_fit_but_not_as_text(small_disk: Path) -> None:
    """The figures were printed by then."""
    completed = rtgauge(
        "probe",
        "wakeup",
        "--cpu",
        0,
        "--interval",
        "100us",
        "--duration",
        "1500ms",
        "--warm-up",
        "0",
        "--samples",
        small_disk / "s.csv",
    )
    line = error_line(completed, 3)
    assert "disk is full" in line
    assert "--samples" in line
    assert list(small_disk.iterdir()) == []
    assert "CPU " in completed.stdout


TO_WRITE = {
    "report": ("show", "RECORD", "--page", "page.html", "--figures", "figures"),
    "windows": ("export", "RECORD", "--format", "parquet", "--windows", "-o", "windows.parquet"),
    "json": ("export", "RECORD", "--format", "json", "-o", "record.json"),
    "compare": ("compare", "RECORD", "--no-intervals", "--no-tails", "--page", "compare.html"),
}


@pytest.mark.parametrize("what", TO_WRITE)
def test_every_size_of_a_disk(small_disk: Path, tmp_path: Path, what: str) -> None:
    """Whatever of it does not fit: one line and exit status 3, and no file that is cut."""
    with own_archive(Path(__file__).parent.parent / "data" / "records" / "records.tar.xz") as archive:
        archive.extractall(tmp_path)
    words = [tmp_path / "repeats" if word == "RECORD" else word for word in TO_WRITE[what]]
    words[-1] = small_disk / str(words[-1])
    if "--figures" in words:
        words[words.index("--page") + 1] = small_disk / "page.html"
    check_every_size(small_disk, words)
