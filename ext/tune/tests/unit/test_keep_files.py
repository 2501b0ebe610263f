# SPDX-License-Identifier: MIT
"""The files that keep a tuning's settings after a boot."""

from __future__ import annotations

import configparser
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rtgauge.record.model import DeploymentReport, SettingMade
from rtgauge.record.reader import Record
from rtgauge_ext.tune.keep_files import SUM, is_unchanged, keep_files
from rtgauge_ext.tune.result import KeptSetting, TuneOutcome, TuneResult

THP = "/sys/kernel/mm/transparent_hugepage/enabled"


def made(path: str, old: str, expected: str, error: str | None = None) -> SettingMade:
    return SettingMade(path=path, old=old, wanted=expected, now=expected, error=error)


def files_of(
    *settings: SettingMade,
    rules: tuple[str, ...] = ("thp",),
    outcome: TuneOutcome = TuneOutcome.FIXED,
    online: str = "0-3",
    isolated: str = "",
) -> dict[str, str]:
    report = DeploymentReport(
        name="settings=thp", words="settings=thp", settings=list(settings), isolated=isolated
    )
    step = SimpleNamespace(key=SimpleNamespace(deployment="settings=thp"), deployment=report)
    kept = [
        KeptSetting(rule=rule, title="a title", found="x", cost="y", against=None, test=None)
        for rule in rules
    ]
    result = TuneResult.model_construct(
        deployment="settings=thp", requirement="latency<=1ms", kept=kept, outcome=outcome
    )
    return dict(
        keep_files(
            result,
            cast(
                "Record",
                SimpleNamespace(
                    steps=[step], systems={"self": SimpleNamespace(cpu=SimpleNamespace(online=online))}
                ),
            ),
        )
    )


class WithCapitals(configparser.RawConfigParser):
    """Keeps the case of names: paths have capitals."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def parsed(text: str) -> Any:
    parser = WithCapitals(strict=False, delimiters=("=",))
    parser.read_string(text)
    return parser


def test_each_kind_of_setting_has_its_file_and_its_undo() -> None:
    files = files_of(made("/proc/sys/kernel/timer_migration", "1", "0"), made(THP, "madvise", "never"))
    assert set(files) == {"README.txt", "rtgauge-tune.conf", "rtgauge-tune.service", "tuned.conf"}
    assert files["rtgauge-tune.conf"].startswith(SUM)
    assert files["rtgauge-tune.conf"].endswith("\n# before: 1\nkernel.timer_migration = 0\n")
    unit = files["rtgauge-tune.service"].splitlines()
    assert f"ExecStart=/bin/sh -c 'echo never > {THP}'" in unit
    assert f"ExecStop=/bin/sh -c 'echo madvise > {THP}'" in unit
    profile = parsed(files["tuned.conf"])
    assert dict(profile["sysctl"]) == {"kernel.timer_migration": "0"}
    assert dict(profile["sysfs"]) == {THP: "never"}


PARTITION = made("/sys/fs/cgroup/rtgauge-isolated/cpuset.cpus.partition", "member", "isolated")


def test_isolated_cpus_are_kept_by_a_slice() -> None:
    files = files_of(PARTITION, isolated="2-3")
    unit = parsed(files["rtgauge.slice"])
    assert dict(unit["Slice"]) == {"AllowedCPUs": "2-3", "CPUSetPartition": "isolated"}
    assert is_unchanged(files["rtgauge.slice"])
    for words in (
        "systemd 261",
        "Slice=rtgauge.slice",
        "isolcpus=managed_irq,2-3 rcu_nocbs=2-3",
        "nohz_full=2-3",
    ):
        assert words in files["README.txt"]


@pytest.mark.parametrize(
    ("settings", "isolated"),
    [
        ([], "2-3"),
        ([PARTITION], ""),
        ([PARTITION], "2-3\nExecStart=/bin/reboot"),
        ([made(PARTITION.path, "member", "isolated", error="EINVAL")], "2-3"),
        ([made("/sys/fs/cgroup/cpuset/rtgauge-isolated/cpuset.cpu_exclusive", "0", "1")], "2-3"),
    ],
)
def test_without_a_partition_there_is_no_slice(settings: list[SettingMade], isolated: str) -> None:
    assert "rtgauge.slice" not in files_of(*settings, isolated=isolated)


def test_what_no_file_can_keep_is_named() -> None:
    files = files_of(made("thread:10:20:affinity", "1", "0"), made(THP, "madvise", "never"))
    assert "1 setting cannot be kept in a file" in files["README.txt"]
    assert "Install" in files["README.txt"]
    assert "thread:" not in "".join(files.values())


def test_a_record_of_somebody_else_puts_nothing_else_into_a_unit() -> None:
    files = files_of(
        made(f"{THP}'; reboot; '", "0", "1"),
        made("/sys/../etc/passwd", "0", "1"),
        made(THP, "madvise\nExecStart=/bin/reboot", "never"),
        made(THP, "madvise", "$(reboot)"),
        made("/etc/passwd", "0", "1"),
    )
    assert set(files) == {"README.txt"}
    assert "reboot" not in files["README.txt"]
    assert "Install" not in files["README.txt"], "there is no file to install"


def test_only_a_file_that_nobody_changed_is_recognised() -> None:
    files = files_of(made("/proc/sys/kernel/timer_migration", "1", "0"), made(THP, "madvise", "never"))
    for name in ("rtgauge-tune.conf", "rtgauge-tune.service"):
        assert is_unchanged(files[name])
        assert not is_unchanged(files[name] + "# mine\n")
        assert not is_unchanged(files[name].partition("\n")[2])
    assert not is_unchanged("")


@pytest.mark.parametrize("outcome", [TuneOutcome.NOT_MEASURED, TuneOutcome.NOTHING, TuneOutcome.UNFINISHED])
def test_a_tuning_that_did_not_show_a_gain_keeps_nothing(outcome: TuneOutcome) -> None:
    assert files_of(made(THP, "madvise", "never"), outcome=outcome) == {}


def test_refused_settings_and_nothing_kept() -> None:
    assert set(files_of(made(THP, "madvise", "never", error="EROFS"))) == {"README.txt"}
    assert files_of(made(THP, "madvise", "never"), rules=()) == {}
