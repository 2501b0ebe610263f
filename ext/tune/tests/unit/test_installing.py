# SPDX-License-Identifier: MIT
"""What files set, whether a machine has it, and how files are installed and removed."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rtgauge.errors import InputError, MeasureError
from rtgauge.target.file_batch import Files
from rtgauge.target.open_target import TargetOpener
from rtgauge_ext.tune import tuning_installation
from rtgauge_ext.tune.drift import kept_settings, own_settings
from rtgauge_ext.tune.keep_files import SLICE_FILE, SYSCTL_FILE, UNIT_FILE, Value, files_with
from rtgauge_ext.tune.tuning_installation import install, isolated_of, same, uninstall, values_of
from rtgauge_ext.tune.writable import is_writable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

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
    assert kept_settings(tmp_path).values == KEPT
    assert own_settings(tmp_path).values == KEPT
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has none of"):
        kept_settings(tmp_path / "empty")
    for name in (SYSCTL_FILE, UNIT_FILE):
        (tmp_path / name).write_bytes(b"\xff\xfe kernel.timer_migration = 0\n")
    with pytest.raises(InputError, match="set nothing"):
        kept_settings(tmp_path)


HOSTILE = [
    "/etc/passwd",
    "/proc/../etc/passwd",
    "/proc/self/root/etc/shadow",
    "/proc/1/root/etc/shadow",
    "/proc/1/cwd/x",
    "/proc/self/fd/3",
    "/proc/1234/timerslack_ns",
    "/proc/sysrq-trigger",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/irq/../sys/kernel/core_pattern",
    "/sys/power/state",
    "/sys/kernel/uevent_helper",
    "/sys/fs/cgroup/x",
    "/sys/block/../power/state/queue/scheduler",
    "/sys/kernel/mm/transparent_hugepage/enabled/x",
]


@pytest.mark.parametrize("path", HOSTILE)
def test_files_that_set_anything_else_are_refused(path: str, tmp_path: Path) -> None:
    unit = f"ExecStart=/bin/sh -c 'echo 1 > {path}'\nExecStop=/bin/sh -c 'echo 0 > {path}'\n"
    (tmp_path / UNIT_FILE).write_text(unit)
    for read in (kept_settings, own_settings):
        with pytest.raises(InputError, match=re.escape(f"{path} = 1")):
            read(tmp_path)
    name = path.removeprefix("/proc/sys/").replace("/", ".")
    with pytest.raises(InputError, match="never keeps the setting"):
        values_of({SYSCTL_FILE: f"# before: 0\n{name} = 1\n"})


@pytest.mark.parametrize(
    ("path", "expected", "old"),
    [
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always", "never"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "never", "$(reboot)"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "never", ""),
        ("/proc/sys/vm/swappiness", "100", "60"),
        ("/proc/irq/8/smp_affinity_list", "0;reboot", "0-3"),
        ("/sys/devices/system/cpu/cpu1/online", "2", "1"),
    ],
)
def test_a_value_that_rtgauge_would_not_write_is_refused(path: str, expected: str, old: str) -> None:
    assert not is_writable(path, expected, old)


@pytest.mark.parametrize(
    ("path", "expected", "old"),
    [
        *KEPT,
        ("/sys/devices/system/cpu/cpu1/online", "0", "1"),
        ("/sys/devices/system/cpu/cpu12/cpuidle/state3/disable", "1", "0"),
        ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance", "schedutil"),
        ("/proc/sys/kernel/sched_rt_runtime_us", "-1", "950000"),
        ("/sys/devices/virtual/workqueue/cpumask", "0000000d,ffffffff", "f,ffffffff"),
        ("/sys/bus/pci/devices/0000:00:1f.2/power/control", "on", "auto"),
        ("/sys/class/net/enp0s31f6/queues/tx-0/xps_cpus", "2", "3"),
        (
            "/sys/devices/system/cpu/intel_uncore_frequency/package_00_die_00/min_freq_khz",
            "2400000",
            "800000",
        ),
    ],
)
def test_what_rules_and_deployments_write_is_accepted(path: str, expected: str, old: str) -> None:
    assert is_writable(path, expected, old)


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


@dataclass
class FakeTarget:
    """A machine with these files. It refuses to write some, with an errno's name."""

    files: dict[str, str]
    refuses: dict[str, str] = field(default_factory=dict[str, str])
    journal: dict[str, str] = field(default_factory=dict[str, str])

    def read(self, paths: Iterable[str]) -> Files:
        return Files({path: {"text": self.files[path]} for path in paths if path in self.files})

    def agent(self, verb: str, *words: str) -> list[dict[str, Any]]:
        if verb == "restore":
            self.files |= self.journal
            self.journal = {}
            return []
        if "--keep" in words:
            return []
        pairs = words[words.index("--") + 1 :]
        answers: list[dict[str, Any]] = []
        for path, expected in zip(pairs[::2], pairs[1::2], strict=True):
            error = self.refuses.get(path)
            if error is None:
                self.journal.setdefault(path, self.files[path])
                self.files[path] = expected
            answers.append(
                {"path": path, "old": self.files.get(path), "now": self.files.get(path), "error": error}
            )
        return answers


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for /etc: a folder for sysctl files, and one for units."""
    (tmp_path / "etc").mkdir()
    places = {name: tmp_path / "etc" / name / name for name in tuning_installation.PLACES}
    monkeypatch.setattr(tuning_installation, "PLACES", places)
    monkeypatch.setattr(tuning_installation, "WANTS_FOLDER", tmp_path / "etc" / "wants")
    monkeypatch.setattr(tuning_installation, "SYSTEMD", tmp_path / "no systemd")
    return tmp_path / "etc"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> FakeTarget:
    target = FakeTarget({each.path: each.old for each in KEPT})

    @contextmanager
    def opened(*_: object) -> Generator[FakeTarget]:
        yield target

    monkeypatch.setattr(tuning_installation, "_opened", opened)
    return target


def say(_reason: str) -> None:
    """Ignore a reason for waiting."""


def test_what_was_installed_is_removed(etc: Path, machine: FakeTarget) -> None:
    before = dict(machine.files)
    assert install(KEPT, 0, say).values == KEPT
    assert machine.files == {each.path: each.wanted for each in KEPT}
    assert {path.name for path in etc.rglob("*") if not path.is_dir()} == {SYSCTL_FILE, UNIT_FILE}
    machine.journal = {}  # as after a boot
    removed = uninstall(0, say)
    assert (removed.restored, removed.left) == (3, [])
    assert machine.files == before
    assert not [path for path in etc.rglob("*") if not path.is_dir()]
    with pytest.raises(InputError, match="nothing is installed"):
        uninstall(0, say)


def test_it_waits_for_a_machine_that_another_run_holds(
    machine: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    class Opener(TargetOpener):
        @contextmanager
        def open(self, *_: object) -> Generator[FakeTarget]:  # pyright: ignore[reportIncompatibleMethodOverride]
            waited.append(self.wait_s)
            yield machine

    monkeypatch.undo()
    monkeypatch.setattr(tuning_installation, "TargetOpener", Opener)
    with tuning_installation._opened("a test", 7.0, say):  # pyright: ignore[reportPrivateUsage]
        pass
    assert waited == [7.0]


def test_a_setting_that_the_machine_refuses_is_not_installed(etc: Path, machine: FakeTarget) -> None:
    machine.refuses = {KEPT[0].path: "ENOENT"}
    installed = install(KEPT, 0, say)
    assert installed.values == KEPT[1:]
    assert installed.refused == [f"{KEPT[0].path} = 0: it does not exist"]
    assert not (etc / SYSCTL_FILE).exists()
    assert KEPT[0].path not in (etc / UNIT_FILE / UNIT_FILE).read_text()


def test_if_every_setting_is_refused_nothing_is_installed(etc: Path, machine: FakeTarget) -> None:
    machine.refuses = {each.path: "EROFS" for each in KEPT}
    with pytest.raises(MeasureError, match="refused every setting"):
        install(KEPT, 0, say)
    assert not list(etc.iterdir())


def test_if_a_file_cannot_be_installed_everything_is_restored(etc: Path, machine: FakeTarget) -> None:
    before = dict(machine.files)
    (etc / "wants").write_text("no folder")
    with pytest.raises(MeasureError, match="nothing was installed"):
        install(KEPT, 0, say)
    assert machine.files == before
    assert not [path for path in etc.rglob("rtgauge*") if not path.is_dir()]


@pytest.mark.parametrize(
    "state", ["isolated", "isolated invalid (Cpu list in cpuset.cpus not exclusive)", None]
)
@pytest.mark.usefixtures("machine")
def test_a_slice_is_started_and_never_stopped(
    etc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str | None
) -> None:
    """`systemctl stop` of a slice ends the programs in it."""
    called: list[str] = []
    partition = tmp_path / "cpuset.cpus.partition"

    def systemctl(*words: str) -> None:
        called.append(" ".join(words))
        if words[0] == "start" and state is not None:
            partition.write_text(f"{state}\n")

    monkeypatch.setattr(tuning_installation, "_systemctl", systemctl)
    monkeypatch.setattr(tuning_installation, "PARTITION", partition)
    installed = install([], 0, say, "2-3")
    text = (etc / SLICE_FILE / SLICE_FILE).read_text()
    assert isolated_of({SLICE_FILE: text}) == "2-3"
    assert (etc / "wants" / SLICE_FILE).is_symlink()
    assert called == ["daemon-reload", f"start {SLICE_FILE}"]
    assert bool(installed.refused) == (state != "isolated")
    assert all(state or "No such file" in line for line in installed.refused)
    uninstall(0, say)
    assert called[2:] == ["daemon-reload"]
    assert not [path for path in etc.rglob("*") if not path.is_dir()]


def test_only_the_cpus_of_a_slice_are_read() -> None:
    for line in ("AllowedCPUs=2-3; reboot", "AllowedCPUs=", "AllowedCPUs=2 3", " AllowedCPUs=1"):
        assert isolated_of({SLICE_FILE: f"[Slice]\n{line}\n"}) == ""
    assert isolated_of({}) == ""


@pytest.mark.usefixtures("machine")
def test_no_file_or_link_of_the_administrator_is_touched(etc: Path) -> None:
    link = etc / "wants" / UNIT_FILE
    link.parent.mkdir()
    link.symlink_to("/lib/systemd/system/other.service")
    with pytest.raises(MeasureError, match="already exists"):
        install(KEPT, 0, say)
    assert link.is_symlink()
    link.unlink()
    install(KEPT, 0, say)
    link.unlink()
    link.symlink_to("/lib/systemd/system/other.service")
    changed = etc / SYSCTL_FILE / SYSCTL_FILE
    changed.write_text(changed.read_text() + "kernel.panic = 10\n")
    removed = uninstall(0, say)
    assert [left for left in removed.left if left.startswith(f"{changed}, ") and "changed" in left]
    assert changed.exists()
    assert link.is_symlink()
    assert not (etc / UNIT_FILE / UNIT_FILE).exists()


@pytest.mark.parametrize("content", [b"# mine\n", b"\xff\xfe", b""])
@pytest.mark.usefixtures("machine")
def test_a_file_that_rtgauge_did_not_write_stays(etc: Path, content: bytes) -> None:
    place = etc / SYSCTL_FILE / SYSCTL_FILE
    place.parent.mkdir()
    place.write_bytes(content)
    with pytest.raises(InputError, match="nothing is installed"):
        uninstall(0, say)
    assert place.read_bytes() == content


@pytest.mark.usefixtures("machine")
def test_without_a_umask_only_root_can_write_to_the_files(etc: Path) -> None:
    before = os.umask(0)
    try:
        install(KEPT, 0, say)
    finally:
        os.umask(before)
    made = [path for path in etc.rglob("*") if not path.is_symlink()]
    assert len(made) == 5
    assert not [path for path in made if path.stat().st_mode & 0o022]


@pytest.mark.root
def test_a_folder_that_another_user_can_change_is_not_applied(tmp_path: Path) -> None:
    folder = tmp_path / "keep"
    folder.mkdir()
    for name, text in files_with(KEPT).items():
        (folder / name).write_text(text)
    assert own_settings(folder).values == KEPT
    (folder / UNIT_FILE).chmod(0o666)
    with pytest.raises(InputError, match="others can write"):
        own_settings(folder)
    (folder / UNIT_FILE).chmod(0o644)
    os.chown(folder / SYSCTL_FILE, 65534, 65534)
    with pytest.raises(InputError, match="belongs to another user"):
        own_settings(folder)
    os.chown(folder / SYSCTL_FILE, 0, 0)
    os.chown(folder, 65534, 65534)
    with pytest.raises(InputError, match="belongs to another user"):
        own_settings(folder)
    assert kept_settings(folder).values == KEPT, "reading such settings is harmless"


def test_a_pipe_in_the_folder_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / UNIT_FILE)
    for read in (kept_settings, own_settings):
        with pytest.raises(InputError, match="not a regular file"):
            read(tmp_path)
