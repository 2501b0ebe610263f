# SPDX-License-Identifier: MIT
"""What the Debian packages' purge removes of a tuning, and what it keeps."""

from __future__ import annotations

from pathlib import Path

from tests.support.package_scripts import purge

from rtgauge_ext.tune.installing import LINK, LINK_TO, PLACES
from rtgauge_ext.tune.keep_files import SYSCTL_FILE, UNIT_FILE, Value, files_with

KEPT = [
    Value("/proc/sys/kernel/timer_migration", "0", "1"),
    Value("/sys/kernel/mm/transparent_hugepage/enabled", "never", "madvise"),
]


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
