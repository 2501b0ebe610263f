# SPDX-License-Identifier: MIT
"""What the Debian packages' purge removes, and what it keeps. The scripts run on folders of the test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.package_scripts import purge

BOOT = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


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
