# SPDX-License-Identifier: MIT
"""wakeup: what it refuses, with one line that names the cause and what to do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engine.stream import CPUS, POLICY, Live, refusal, refused, wakeup

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.engine
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
SYSTEM_CPUS = Path("/sys/devices/system/cpu")
CPU_GROUPS = Path("/sys/fs/cgroup/cpu")
CPUSETS = Path("/sys/fs/cgroup/cpuset")


@pytest.mark.parametrize(
    ("words", "code", "expected_text"),
    [
        (["--interval-ns=0"], "interval", "longer than 0"),
        (["--interval-ns=-5"], "interval", "longer than 0"),
        (["--interval-ns=-9223372036854775808"], "interval", "longer than 0"),
        (["--interval-ns=999"], "interval", "999 ns is shorter than"),
        (["--interval-ns=3600000000001"], "usage", "at most"),
        (["--interval-ns=1ms"], "usage", "not a whole number"),
        (["--priority=0"], "usage", "1 to 99"),
        (["--priority=100"], "usage", "1 to 99"),
        (["--count=5", "--duration-ns=5"], "usage", "not both"),
        (["--count=-1"], "usage", "must be 0 to"),
        (["--count=2305843009213693951"], "usage", "70 years"),
        (["--count=2305843009214"], "usage", "70 years"),
        (["--duration-ns=2305843009213693952"], "usage", "must be 0 to 2305843009213693951"),
        (["--duration-ns=99999999999999999999"], "usage", "not a whole number"),
        (["--warm-up-ns=3600000000001"], "usage", "must be 0 to"),
        (["--dma-latency-us=-2"], "usage", "must be -1 to"),
        (["--policy=idle"], "usage", "--policy idle"),
        (["--timer=alarm"], "usage", "--timer alarm"),
        (["--unknown=1"], "usage", "unknown option --unknown"),
        (["--interval-ns"], "usage", "needs a value"),
        (["--samples-dir="], "usage", "not empty"),
        (["--cpu="], "usage", "not a CPU list"),
        (["--cpu=0-"], "usage", "not a CPU list"),
        (["--cpu=99999999"], "usage", "not a CPU list"),
        (["--cpu=8191"], "cpu-missing", "there is no CPU 8191"),
        (["now"], "usage", "'now' is not an option"),
    ],
)
def test_wrong_input(engine: Path, words: list[str], code: str, expected_text: str) -> None:
    assert expected_text in refused(engine, code, 2, "wakeup", *words)


def test_a_verb_that_is_none(engine: Path) -> None:
    assert "unknown verb 'wake'" in refused(engine, "usage", 2, "wake")
    completed = subprocess.run([engine], capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr.startswith("usage: rtgauge-engine VERB")


def test_help_and_version(engine: Path) -> None:
    for words in (["--help"], ["wakeup", "--help"], ["calibrate", "--help"], ["version"]):
        completed = subprocess.run([engine, *words], capture_output=True, text=True, check=True)
        assert completed.stdout
        assert completed.stderr == ""
    shown = subprocess.run([engine, "wakeup", "--help"], capture_output=True, text=True, check=True).stdout
    for option in (
        "cpu",
        "interval-ns",
        "policy",
        "priority",
        "timer",
        "phase",
        "duration-ns",
        "count",
        "warm-up-ns",
        "stop-at-ns",
        "samples-dir",
        "go",
    ):
        assert f"--{option} " in shown


def test_a_folder_for_samples_that_is_missing(engine: Path, tmp_path: Path) -> None:
    message = refused(
        engine,
        "output",
        3,
        "wakeup",
        "--go",
        f"--policy={POLICY}",
        "--count=10",
        f"--samples-dir={tmp_path}/none",
    )
    assert "No such file or directory" in message
    assert str(tmp_path) in message


@pytest.mark.alone
class TestOffline:
    """A CPU is taken offline for a moment."""

    pytestmark = pytest.mark.root

    @pytest.fixture
    def switch(self) -> Iterator[tuple[int, Path]]:
        cpu = CPUS[-1]
        file = SYSTEM_CPUS / f"cpu{cpu}" / "online"
        if len(CPUS) < 2 or not os.access(file, os.W_OK):
            pytest.skip("no CPU can be taken offline here")
        affinity = os.sched_getaffinity(0)
        try:
            yield cpu, file
        finally:
            file.write_text("1")
            os.sched_setaffinity(0, affinity)

    def test_an_offline_cpu_is_refused_or_named(self, engine: Path, switch: tuple[int, Path]) -> None:
        cpu, file = switch
        file.write_text("0")
        message = refused(engine, "cpu-offline", 2, "wakeup", f"--cpu={cpu}", "--go", "--count=10")
        stream = wakeup(engine, "--count=20")
        file.write_text("1")
        assert f"CPU {cpu} is offline" in message
        assert f"cpu{cpu}/online" in message
        hello = stream.one("hello")
        assert cpu not in hello["cpus"]
        assert {"cpu": cpu, "reason": "offline"} in hello["cpus_not_measured"]

    def test_a_cpu_that_goes_away_marks_its_series(self, engine: Path, switch: tuple[int, Path]) -> None:
        cpu, file = switch
        with Live(engine, "wakeup", f"--policy={POLICY}", "--warm-up-ns=0") as live:
            live.read_until("armed")
            live.send("go\n")
            live.read_until("window")
            file.write_text("0")
            windows = live.text.count(b'"window"')
            while live.text.count(b'"window"') == windows:  # its thread has to leave meanwhile
                live.read_more()
            live.send("stop\n")
            stream = live.finish()
            file.write_text("1")
        assert stream.reason == "stopped"
        lost = [mark for mark in stream.all("mark") if mark["name"] == "cpu-lost"]
        assert [(mark["series"], mark["severity"]) for mark in lost] == [(CPUS.index(cpu), "invalid")]
        assert f"moved the measuring thread of CPU {cpu} " in lost[0]["detail"]


@pytest.fixture
def open_engine(engine: Path) -> Iterator[Path]:
    """The engine where any user can start it."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield Path(shutil.copy(engine, folder))
    shutil.rmtree(folder)


class TestWithoutRights:
    """As a user that nobody gave anything."""

    pytestmark = pytest.mark.root

    def test_no_real_time_limit(self, open_engine: Path) -> None:
        error = refusal(
            open_engine, "permission-rt", 3, "wakeup", "--go", prefix=["prlimit", "--rtprio=0", *NOBODY]
        )
        assert error["message"].startswith("real-time priority 98 is refused: ")
        facts = {
            "errno": "EPERM",
            "priority": 98,
            "other_allowed": True,
            "euid": 65534,
            "cap_sys_nice": False,
            "rtprio_limit": 0,
            "user_namespace": False,
            "seccomp": False,
        }
        assert error["detail"] == facts | {"cgroup": Path("/proc/self/cgroup").read_text()}

    def test_a_right_that_root_lacks(self, engine: Path) -> None:
        error = refusal(
            engine,
            "permission-rt",
            3,
            "wakeup",
            "--go",
            prefix=["prlimit", "--rtprio=0", "setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"],
        )
        assert (error["detail"]["euid"], error["detail"]["cap_sys_nice"]) == (0, False)

    def test_a_memory_limit_whatever_its_size(self, open_engine: Path) -> None:
        """However far the engine comes with it, the limit is what it names."""
        words = ["wakeup", "--go", "--policy=other", "--count=20", "--warm-up-ns=0"]
        error = refusal(open_engine, "memory-lock", 3, *words, prefix=["prlimit", "--memlock=65536", *NOBODY])
        assert error["detail"] == {"errno": "ENOMEM", "memlock_limit_bytes": 65536}
        outcomes = set()
        for kib in (*range(512, 4096, 128), 8192):
            stream = wakeup(
                open_engine,
                "--count=20",
                policy="other",
                prefix=["prlimit", f"--memlock={kib * 1024}", *NOBODY],
            )
            if stream.all("error"):
                assert stream.one("error")["code"] == "memory-lock"
                assert stream.one("error")["detail"]["memlock_limit_bytes"] == kib * 1024
                outcomes.add("refused")
            else:
                assert stream.reason == "count"
                outcomes.add("measured")
        assert outcomes == {"refused", "measured"}

    def test_without_a_lock_it_says_so(self, open_engine: Path) -> None:
        stream = wakeup(
            open_engine,
            "--count=20",
            "--memory-lock=off",
            policy="other",
            prefix=["prlimit", "--memlock=0", *NOBODY],
        )
        assert stream.reason == "count"
        assert "not-locked" in stream.marks

    def test_no_access_to_the_latency_request_is_marked(self, open_engine: Path) -> None:
        stream = wakeup(open_engine, "--count=20", "--memory-lock=off", policy="other", prefix=NOBODY)
        assert stream.one("hello")["dma_latency"] == {"wanted_us": 0, "state": "failed"}
        assert "dma-latency-failed" in stream.marks
        stream = wakeup(
            open_engine,
            "--count=20",
            "--memory-lock=off",
            "--dma-latency-us=-1",
            policy="other",
            prefix=NOBODY,
        )
        assert stream.one("hello")["dma_latency"] == {"wanted_us": None, "state": "off"}
        assert "dma-latency-failed" not in stream.marks


@pytest.fixture
def group(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A cgroup of its own in the v1 hierarchy that the test names."""
    hierarchy: Path = request.param
    folder = hierarchy / f"rtgauge-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup v1 can be made in {hierarchy}: {error.strerror}")
    try:
        yield folder
    finally:
        folder.rmdir()


def inside(folder: Path) -> list[str]:
    """Starts a program in this group."""
    return ["sh", "-c", 'echo $$ >"$0"/cgroup.procs && exec "$@"', str(folder)]


class TestGroups:
    """cgroup v1 takes rights even from root."""

    pytestmark = pytest.mark.root

    @pytest.mark.parametrize("group", [CPU_GROUPS], indirect=True)
    @pytest.mark.skipif(
        not (CPU_GROUPS / "cpu.rt_runtime_us").exists(),
        reason="this kernel has no real-time runtime of cgroups v1",
    )
    def test_a_group_without_real_time_runtime(self, engine: Path, group: Path) -> None:
        assert (group / "cpu.rt_runtime_us").read_text().strip() == "0"
        detail = refusal(engine, "permission-rt", 3, "wakeup", "--go", prefix=inside(group))["detail"]
        assert (detail["cap_sys_nice"], detail["errno"]) == (True, "EPERM")
        assert f"/{group.name}\n" in detail["cgroup"]
        assert wakeup(engine, "--count=20", policy="other", prefix=inside(group)).reason == "count"

    @pytest.mark.parametrize("group", [CPUSETS], indirect=True)
    @pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
    def test_a_cpuset(self, engine: Path, group: Path) -> None:
        (group / "cpuset.cpus").write_text(str(CPUS[0]))
        (group / "cpuset.mems").write_text((CPUSETS / "cpuset.mems").read_text())
        message = refused(
            engine, "cpu-not-allowed", 2, "wakeup", "--go", f"--cpu={CPUS[1]}", prefix=inside(group)
        )
        assert f"does not allow CPU {CPUS[1]}," in message
        assert re.search(rf"only {CPUS[0]}: choose", message)
        hello = wakeup(engine, "--count=20", prefix=inside(group)).one("hello")
        assert hello["cpus"] == CPUS[:1]
        assert {"cpu": CPUS[1], "reason": "cpuset"} in hello["cpus_not_measured"]


class TestFullDisk:
    """A file system of 64 KiB."""

    pytestmark = pytest.mark.root

    def test_it_ends_and_says_so(self, engine: Path, small_disk: Path) -> None:
        subprocess.run(["mount", "-o", "remount,size=64k", str(small_disk)], check=True)
        stream = wakeup(
            engine, "--interval-ns=20000", "--duration-ns=60000000000", f"--samples-dir={small_disk}"
        )
        error = stream.lines[-1]
        assert (error["type"], error["code"], stream.status) == ("error", "output", 3)
        assert "the disk is full" in error["message"]
        assert str(small_disk) in error["message"]
        # What was measured up to then is there.
        assert len(stream.all("summary")) == len(CPUS)
        assert all(line["count"] + line["missed"] > 0 for line in stream.all("summary"))
