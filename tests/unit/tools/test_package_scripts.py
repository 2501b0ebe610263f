# SPDX-License-Identifier: MIT
"""What the Debian packages' purge removes, and what it keeps. The scripts run on folders of the test."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from rtgauge.tune.installing import LINK, LINK_TO, PLACES
from rtgauge.tune.keep_files import SYSCTL_FILE, UNIT_FILE, Value, files_with

SCRIPTS = Path(__file__).parents[3] / "packaging/debian"
BOOT = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
KEPT = [
    Value("/proc/sys/kernel/timer_migration", "0", "1"),
    Value("/sys/kernel/mm/transparent_hugepage/enabled", "never", "madvise"),
]


def purge(root: Path, package: str) -> str:
    """Run a package's script with /etc, /run and /var in `root`; return what it printed as errors."""
    text = (SCRIPTS / f"{package}.postrm").read_text(encoding="utf-8")
    moved = re.sub(r"(?<=[ =])(?=/(?:etc|run|var)/)", str(root), text)
    done = subprocess.run(["sh", "-c", moved, "postrm", "purge"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def installed(root: Path) -> dict[str, Path]:
    """Install a tuning's files below `root`; return their places."""
    places = {name: root / place.relative_to("/") for name, place in PLACES.items()}
    for name, text in files_with(KEPT).items():
        places[name].parent.mkdir(parents=True)
        places[name].write_text(text)
    link = root / LINK.relative_to("/")
    link.parent.mkdir()
    link.symlink_to(LINK_TO)
    return {**places, "link": link}


def test_purge_removes_what_tune_apply_installed(tmp_path: Path) -> None:
    places = installed(tmp_path)
    purge(tmp_path, "rtgauge")
    assert not [name for name, place in places.items() if place.exists() or place.is_symlink()]


def test_purge_leaves_what_somebody_changed(tmp_path: Path) -> None:
    places = installed(tmp_path)
    for name in (SYSCTL_FILE, UNIT_FILE):
        places[name].write_text(places[name].read_text() + "# mine\n")
    purge(tmp_path, "rtgauge")
    assert all(place.exists() or place.is_symlink() for place in places.values())


def test_purge_leaves_a_link_to_another_unit(tmp_path: Path) -> None:
    places = installed(tmp_path)
    places["link"].unlink()
    places["link"].symlink_to("/lib/systemd/system/other.service")
    purge(tmp_path, "rtgauge")
    assert places["link"].is_symlink()
    assert not places[UNIT_FILE].exists()


def entry(state: str, boot: str, *, volatile: bool) -> str:
    return json.dumps(
        {"state": state, "seq": 1, "owner": "held", "boot": boot, "volatile": volatile}, separators=(",", ":")
    )


@pytest.mark.parametrize(
    ("lines", "stays"),
    [
        ([entry("s", BOOT, volatile=True)], True),
        ([entry("o", BOOT, volatile=True), entry("a", BOOT, volatile=True)], True),
        ([entry("s", "another-boot", volatile=False)], True),
        ([entry("s", "another-boot", volatile=True)], False),
        ([entry("o", BOOT, volatile=True)], False),
        ([], False),
    ],
)
def test_purge_keeps_the_journal_of_settings_in_force(
    tmp_path: Path, lines: list[str], *, stays: bool
) -> None:
    folder = tmp_path / "var/lib/rtgauge"
    folder.mkdir(parents=True)
    (folder / "journal.ndjson").write_text("".join(f"{line}\n" for line in lines))
    errors = purge(tmp_path, "rtgauge-engine")
    assert folder.exists() == stays
    assert ("rtgauge restore --applied" in errors) == stays


def test_purge_without_anything_to_remove(tmp_path: Path) -> None:
    assert purge(tmp_path, "rtgauge") == purge(tmp_path, "rtgauge-engine") == ""
