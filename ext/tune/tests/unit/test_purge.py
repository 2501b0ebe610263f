# SPDX-License-Identifier: MIT
"""What the Debian packages' purge removes of a tuning, and what it keeps."""

from __future__ import annotations

from pathlib import Path

from tests.support.package_scripts import purge

from rtgauge_ext.tune.keep_files import SLICE_FILE, SYSCTL_FILE, UNIT_FILE, Value, files_with, slice_text
from rtgauge_ext.tune.tuning_installation import LINKED, PLACES, WANTS_FOLDER

KEPT = [
    Value("/proc/sys/kernel/timer_migration", "0", "1"),
    Value("/sys/kernel/mm/transparent_hugepage/enabled", "never", "madvise"),
]


def installed(root: Path) -> dict[str, Path]:
    """Install a tuning's files below `root`; return their places."""
    places = {name: root / place.relative_to("/") for name, place in PLACES.items()}
    for name, text in {**files_with(KEPT), SLICE_FILE: slice_text("2-3")}.items():
        places[name].parent.mkdir(parents=True, exist_ok=True)
        places[name].write_text(text)
    wants = root / WANTS_FOLDER.relative_to("/")
    wants.mkdir()
    for name in LINKED:
        (wants / name).symlink_to(f"../{name}")
    return {**places, **{f"link of {name}": wants / name for name in LINKED}}


def test_purge_removes_what_tune_apply_installed(tmp_path: Path) -> None:
    places = installed(tmp_path)
    purge(tmp_path, "rtgauge")
    assert not [name for name, place in places.items() if place.exists() or place.is_symlink()]


def test_purge_leaves_what_somebody_changed(tmp_path: Path) -> None:
    places = installed(tmp_path)
    for name in (SYSCTL_FILE, UNIT_FILE, SLICE_FILE):
        places[name].write_text(places[name].read_text() + "# mine\n")
    purge(tmp_path, "rtgauge")
    assert all(place.exists() or place.is_symlink() for place in places.values())


def test_purge_leaves_a_link_to_another_unit(tmp_path: Path) -> None:
    places = installed(tmp_path)
    link = places[f"link of {UNIT_FILE}"]
    link.unlink()
    link.symlink_to("/lib/systemd/system/other.service")
    purge(tmp_path, "rtgauge")
    assert link.is_symlink()
    assert not places[UNIT_FILE].exists()
