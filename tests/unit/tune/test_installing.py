# SPDX-License-Identifier: MIT
"""What files set, and whether a machine has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtgauge.errors import InputError
from rtgauge.tune.drift import kept_values
from rtgauge.tune.installing import same, values_of
from rtgauge.tune.keep_files import SYSCTL_FILE, UNIT_FILE, Value, files_with
from rtgauge.tune.known import advice, measured, rule_of

KEPT = [
    Value("/proc/sys/kernel/timer_migration", "0", "1"),
    Value("/sys/kernel/mm/transparent_hugepage/enabled", "never", "madvise"),
    Value("/proc/irq/8/smp_affinity_list", "0,2-3", "0-3"),
]


def test_what_is_written_into_files_is_read_from_them() -> None:
    files = files_with(KEPT)
    assert set(files) == {SYSCTL_FILE, UNIT_FILE}
    assert values_of(files) == KEPT


def test_a_folder_of_files_is_read(tmp_path: Path) -> None:
    for name, text in files_with(KEPT).items():
        (tmp_path / name).write_text(text)
    assert kept_values(tmp_path) == KEPT
    with pytest.raises(InputError, match="has neither"):
        kept_values(tmp_path / "..")


@pytest.mark.parametrize(
    "line",
    [
        "ExecStart=/bin/sh -c 'echo 1 > /etc/passwd'",
        "ExecStart=/bin/sh -c 'echo 1 > /proc/../etc/passwd'",
        "ExecStart=/bin/sh -c 'echo $(reboot) > /proc/x'",
        "ExecStart=/bin/sh -c 'echo 1 > /sys/fs/cgroup/x'",
    ],
)
def test_files_that_set_anything_else_are_refused(line: str) -> None:
    with pytest.raises(InputError, match="is not in /proc or /sys"):
        values_of({UNIT_FILE: line})


def test_other_lines_of_a_unit_are_not_installed() -> None:
    files = files_with(KEPT)
    files[UNIT_FILE] += "ExecStartPost=/bin/reboot\n"
    assert "reboot" not in files_with(values_of(files))[UNIT_FILE]


@pytest.mark.parametrize(
    ("text", "value", "is_same"),
    [
        ("always madvise [never]\n", "never", True),
        ("always [madvise] never\n", "never", False),
        ("0,2-3\n", "0,2,3", True),
        ("0000000f\n", "f", True),
        ("1\n", "0", False),
        ("", "0", False),
    ],
)
def test_a_value_is_compared_as_the_kernel_means_it(text: str, value: str, *, is_same: bool) -> None:
    assert same(text, value) == is_same


def test_a_setting_is_explained_with_both_sides(tmp_path: Path) -> None:
    lines = "\n".join(advice(rule_of("timer-migration")))
    for words in ("For it: ", "Against it: with nohz_full=", "Costs: ", "These daemons set it back: tuned"):
        assert words in lines
    assert "Set by a boot with: psi=0" in "\n".join(advice(rule_of("pressure-stalls")))
    assert measured(rule_of("thp"), tmp_path) is None
    with pytest.raises(InputError, match="did you mean 'thp'"):
        rule_of("thpp")
