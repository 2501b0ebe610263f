# SPDX-License-Identifier: MIT
"""Loads that really run on this machine, for about a second each."""

from __future__ import annotations

import os
import shutil
import signal
import time
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import pytest

from rtgauge.errors import MeasureError
from rtgauge.load import load_registry
from rtgauge.load.lifecycle import RunningLoad
from rtgauge.load.load import Load, LoadContext, PartSpec
from rtgauge.load.network import VETH_TRIAL
from rtgauge.load.processes import STAT_GLOB, count_alive, descendants, parse_all
from rtgauge.target.local import read_local
from tests.support.local_target import LocalHandle, LocalTarget
from tests.support.running_loads import nothing_left

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rtgauge.record.model import LoadReport

SMALL = {"/proc/meminfo": "MemTotal:  300000 kB\nMemAvailable:  290000 kB\n"}
pytestmark = pytest.mark.load


class Shell(Load):
    """A load for tests: one shell script."""

    name = "shell"
    programs: ClassVar[tuple[str, ...]] = ("sh",)

    def __init__(self, script: str, ready: tuple[str, int] = ("s", 1)) -> None:
        self._script = script
        self._ready = ready

    def parts(self, context: LoadContext) -> list[PartSpec]:
        return [PartSpec("sh", ["sh", "-c", self._script], {}, ready=self._ready)]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    with nothing_left(tmp_path) as file:
        yield file


def needs(*programs: str) -> None:
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed")


def cpu_ticks(program: str) -> int:
    """The CPU time of the processes of that name (USER_HZ)."""
    actual = parse_all(read_local([STAT_GLOB])).values()
    return sum(process.ticks for process in actual if process.name.startswith(program))


def run(
    load: Load, log: Path, target: LocalTarget | None = None, *, seconds: float = 1.0, busy: str | None = None
) -> LoadReport:
    """Run a load for so long, and until the program `busy` has had the CPU for some ticks."""
    with RunningLoad.start(target or LocalTarget(SMALL), load, log, expected_s=5) as running:
        running.wait_warm(0.3)
        enough = 0 if busy is None else cpu_ticks(busy) + 10
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline or (busy is not None and cpu_ticks(busy) < enough):
            assert running.check() == []
            time.sleep(0.1)
        return running.stop()


def test_idle_starts_nothing(log: Path) -> None:
    target = LocalTarget()
    report = run(load_registry.get("idle"), log, target, seconds=0)
    assert (report.name, report.parts, target.handles) == ("idle", [], [])
    assert report.started_ns is not None
    assert report.warm_ns is not None
    assert report.ended_ns is not None
    assert report.started_ns <= report.warm_ns <= report.ended_ns
    assert not log.exists()


def test_cpu(log: Path) -> None:
    needs("stress-ng")
    (part,) = run(load_registry.get("cpu"), log, busy="stress-ng").parts
    assert part.ended_early is None
    assert part.version is not None
    assert part.reached["cpu_s"] > 0
    assert 0 < part.reached["cpu_share"] < 1.2
    assert part.reached["measured_s"] >= 1
    assert b"stress-ng" in log.read_bytes()


def test_cache(log: Path) -> None:
    needs("stress-ng")
    (part,) = run(load_registry.get("cache"), log, busy="stress-ng").parts
    assert part.ended_early is None
    assert part.reached["cpu_s"] > 0


def test_memory(log: Path) -> None:
    needs("stress-ng")
    (part,) = run(load_registry.get("memory"), log).parts
    assert part.ended_early is None
    given = part.wanted["bytes_given"]
    assert given == pytest.approx(0.7 * 300000 * 1024, rel=0.01)
    # stress-ng unmaps and maps again, and its own processes take some MiB each
    assert 0 < part.reached["resident_bytes_mean"] <= part.reached["resident_bytes_max"] < given + (100 << 20)


def test_network_over_loopback(log: Path) -> None:
    needs("iperf3")
    report = run(load_registry.get("network"), log, LocalTarget(hidden=["unshare"]))
    (part,) = report.parts
    assert (part.wanted["over"], part.ended_early, part.reached["streams"]) == ("loopback", None, 100)
    assert part.reached["bits_per_second"] > 1_000_000
    assert "loopback" in report.notes[0]


@pytest.mark.root
def test_network_between_namespaces_leaves_nothing(log: Path) -> None:
    needs("iperf3", "ip", "unshare", "nsenter")
    target = LocalTarget()
    if (
        os.geteuid() != 0
        or target.run(["unshare", "--net", "sh", "-c", VETH_TRIAL, "sh", "ip"], 5).returncode != 0
    ):
        pytest.skip("network namespaces are not allowed here")
    namespaces = target.run(["ip", "netns", "list"], 5).stdout
    (part,) = run(load_registry.get("network"), log, target).parts
    assert (part.wanted["over"], part.ended_early, part.reached["streams"]) == ("veth", None, 100)
    assert part.reached["bits_per_second"] > 1_000_000
    assert "rtg-" not in target.run(["ip", "link"], 5).stdout
    assert target.run(["ip", "netns", "list"], 5).stdout == namespaces


@pytest.mark.root
@pytest.mark.parametrize(("busybox", "over"), [(("sh",), "veth"), (("sh", "ip"), "loopback")])
def test_network_where_programs_are_busyboxs(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busybox: tuple[str, ...], over: str
) -> None:
    needs("iperf3", "ip", "unshare", "nsenter", "busybox")
    if (
        os.geteuid() != 0
        or LocalTarget().run(["unshare", "--net", "sh", "-c", VETH_TRIAL, "sh", "ip"], 5).returncode != 0
    ):
        pytest.skip("network namespaces are not allowed here")
    program = shutil.which("busybox")
    assert program is not None
    for name in busybox:
        (tmp_path / name).symlink_to(program)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (part,) = run(load_registry.get("network"), log).parts
    assert (part.wanted["over"], part.ended_early, part.reached["streams"]) == (over, None, 100)


def test_network_that_is_killed_ends_altogether(log: Path) -> None:
    needs("iperf3")
    target = LocalTarget()
    with RunningLoad.start(target, load_registry.get("network"), log, expected_s=5) as running:
        running.wait_warm(0.3)
        # the server is in a session of its own: it ends since its one client is gone
        os.killpg(target.handles[0].pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while not running.check() and time.monotonic() < deadline:
            time.sleep(0.02)
        (died,) = running.check()
        assert died.startswith("iperf3: was ended by signal 9")
        assert running.stop().parts[0].reached["bits_per_second"] is None


def test_scheduler(log: Path) -> None:
    needs("hackbench")
    (part,) = run(load_registry.get("scheduler"), log, seconds=3).parts
    assert part.ended_early is None
    assert part.reached["rounds"] > 0
    assert part.reached["cpu_s"] > 0


def test_a_program_that_fails_at_once(log: Path) -> None:
    with pytest.raises(MeasureError, match="sh: ended with status 3: no such thing"):
        run(Shell("echo no such thing; exit 3", ready=("sleep", 1)), log)
    assert b"no such thing" in log.read_bytes()


def test_a_program_that_is_never_ready(log: Path) -> None:
    load = Shell("sleep 20", ready=("never", 1))
    with (
        RunningLoad.start(LocalTarget(), load, log, expected_s=5) as running,
        pytest.raises(MeasureError, match="did not start running within"),
    ):
        running.wait_warm(0, ready_s=0.3)


def test_a_load_that_dies_early_is_reported(log: Path) -> None:
    target = LocalTarget()
    with RunningLoad.start(
        target, Shell("sleep 60 & wait $!; echo gone; exit 9", ready=("sleep", 1)), log, expected_s=5
    ) as running:
        running.wait_warm(0)
        assert running.check() == []
        for process in descendants(parse_all(read_local([STAT_GLOB])), target.handles[0].pid):
            if process.name == "sleep":
                os.kill(process.pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while not running.check() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert running.check() == ["sh: ended with status 9: gone"]
        report = running.stop()
    assert report.parts[0].ended_early == "ended with status 9: gone"
    assert "cpu_share" not in report.parts[0].reached
    assert running.stop() is report


def test_a_worker_that_dies_alone_is_noticed(log: Path) -> None:
    target = LocalTarget()
    with RunningLoad.start(
        target, Shell("sleep 61 & sleep 62 & wait", ready=("sleep", 2)), log, expected_s=5
    ) as running:
        running.wait_warm(0)
        worker = next(
            p
            for p in descendants(parse_all(read_local([STAT_GLOB])), target.handles[0].pid)
            if p.name == "sleep"
        )
        os.kill(worker.pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while (
            count_alive(descendants(parse_all(read_local([STAT_GLOB])), target.handles[0].pid), "sleep") > 1
            and time.monotonic() < deadline
        ):
            time.sleep(0.02)
        assert running.stop().parts[0].ended_early == "1 of its 2 processes did"


def test_an_interrupt_ends_the_load(log: Path) -> None:
    target = LocalTarget()
    with (
        pytest.raises(KeyboardInterrupt),
        RunningLoad.start(target, Shell("sleep 60 & wait"), log, expected_s=5) as running,
    ):
        running.wait_warm(0)
        raise KeyboardInterrupt
    assert target.handles[0].poll() is not None


def test_when_the_second_part_cannot_start_the_first_is_ended(log: Path) -> None:
    class Two(Load):
        name = "two"
        programs: ClassVar[tuple[str, ...]] = ()

        def parts(self, context: LoadContext) -> list[PartSpec]:
            return [
                PartSpec("sleep", ["sleep", "60"], {}, ready=("sleep", 1)),
                PartSpec("x", ["/does/not/exist"], {}, ready=("x", 1)),
            ]

    target = LocalTarget()
    with pytest.raises(FileNotFoundError):
        RunningLoad.start(target, Two(), log, expected_s=5)
    assert target.handles[0].poll() is not None


def test_when_one_part_cannot_be_ended_the_others_are(log: Path) -> None:
    class Stubborn(LocalTarget):
        def start(self, argv: Sequence[str], log: BinaryIO) -> Any:
            handle = super().start(argv, log)
            if len(self.handles) == 2:
                return StubbornHandle(handle)
            return handle

    class StubbornHandle(LocalHandle):
        def __init__(self, inner: LocalHandle) -> None:
            self._inner = inner
            self.pid = inner.pid

        def poll(self) -> int | None:
            return self._inner.poll()

        def stop(self, grace_s: float) -> int | None:
            self._inner.stop(grace_s)
            raise KeyboardInterrupt

    class Two(Load):
        name = "two"
        programs: ClassVar[tuple[str, ...]] = ()

        def parts(self, context: LoadContext) -> list[PartSpec]:
            return [PartSpec("sleep", ["sleep", "60"], {}, ready=("sleep", 1)) for _ in range(2)]

    target = Stubborn()
    running = RunningLoad.start(target, Two(), log, expected_s=5)
    with pytest.raises(KeyboardInterrupt):
        running.stop()
    assert all(handle.poll() is not None for handle in target.handles)
