# SPDX-License-Identifier: MIT
"""No permission: tried before anything else, the cause is named, and what can be done about it."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.cli import SHORT, error_line, good, rtgauge
from tests.support.messages import missing
from tests.support.real_record import document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.engine, pytest.mark.root]

READ_ONLY = "-all,+dac_read_search"
"""An ordinary user, but for the right to read: the Python that runs these tests may be in root's own folder.
"""
ORDINARY = (
    "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps={READ_ONLY}",
    f"--ambient-caps={READ_ONLY}", f"--bounding-set={READ_ONLY}",
)  # fmt: skip
WEAK_ROOT = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
PROBE = ("probe", "wakeup", "--duration", "300ms", "--warm-up", "0")
CPU_CGROUP = Path("/sys/fs/cgroup/cpu")
CPUSET_CGROUP = Path("/sys/fs/cgroup/cpuset")


def limits(**expected: int) -> Callable[[], None]:
    """To be called in the child: sets resource limits, `rtprio=0` and so on."""

    def apply() -> None:
        for name, value in expected.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (value, value))

    return apply


@pytest.mark.parametrize(
    ("who", "expected_text"),
    [
        (ORDINARY, "is not root and has no CAP_SYS_NICE"),
        (WEAK_ROOT, "lacks some of root's rights and has no CAP_SYS_NICE"),
    ],
)
def test_no_real_time_scheduling(tmp_path: Path, who: tuple[str, ...], expected_text: str) -> None:
    tmp_path.chmod(0o777)
    for words in (PROBE, ("run", "--load", "idle", "--out", tmp_path / "out")):
        line = error_line(rtgauge(*words, before=who, preexec_fn=limits(rtprio=0), cwd="/"), 3)
        assert "real-time scheduling is refused" in line
        assert expected_text in line
        assert "RLIMIT_RTPRIO is 0" in line
        assert "--policy other" in line
    assert list(tmp_path.iterdir()) == []


def test_an_ordinary_user_measures_with_the_ordinary_policy(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    completed = good(
        rtgauge(
            "run",
            "--load",
            "idle",
            "--duration",
            "300ms",
            "--set",
            "policy=other",
            *SHORT,
            "--json",
            "--out",
            tmp_path / "out",
            before=ORDINARY,
            cwd="/",
        )
    )
    (step,) = document(completed.stdout)["steps"]
    assert step["parameters"]["policy"] == "other"
    assert step["total"]["count"] > 0
    # the hint of the error works as it is written
    good(rtgauge(*PROBE, "--policy", "other", before=ORDINARY, cwd="/"))


def test_a_limit_on_locked_memory_is_named() -> None:
    words = (*PROBE, "--policy", "other")
    line = error_line(rtgauge(*words, before=ORDINARY, preexec_fn=limits(memlock=65536), cwd="/"), 3)
    assert "memory cannot be locked" in line
    assert "RLIMIT_MEMLOCK) is 64 KiB" in line
    assert "--memory-lock off" in line
    good(rtgauge(*words, "--memory-lock", "off", before=ORDINARY, preexec_fn=limits(memlock=65536), cwd="/"))


@pytest.fixture
def group_without_runtime() -> Iterator[Path]:
    """A cgroup v1 group whose tasks get no real-time scheduling, not even as root."""
    if not (CPU_CGROUP / "cpu.rt_runtime_us").exists():
        pytest.skip("no cgroup v1 cpu controller with RT_GROUP_SCHED on this machine")
    group = CPU_CGROUP / f"rtgauge-test-{os.getpid()}"
    group.mkdir()
    try:
        if (group / "cpu.rt_runtime_us").read_text().strip() != "0":
            (group / "cpu.rt_runtime_us").write_text("0")
        yield group
    finally:
        group.rmdir()


def test_a_cgroup_without_real_time_runtime_is_named(group_without_runtime: Path) -> None:
    def join() -> None:
        (group_without_runtime / "cgroup.procs").write_text(str(os.getpid()))

    line = error_line(rtgauge(*PROBE, preexec_fn=join), 3)
    assert "cgroup without real-time runtime" in line
    assert f"{group_without_runtime}/cpu.rt_runtime_us is 0" in line


def forbid_setscheduler() -> None:
    """To be called in the child: a seccomp filter answers sched_setscheduler(2) with EPERM."""
    number = {"x86_64": 144, "aarch64": 119}[platform.machine()]
    # load the system call's number; allow all but this one (linux/seccomp.h, linux/filter.h)
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
    library = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, seccomp, filter_mode = 38, 22, 2
    for words in (
        (no_new_privileges, 1, 0, 0, 0),
        (seccomp, filter_mode, ctypes.c_void_p(ctypes.addressof(program))),
    ):
        if library.prctl(*words):
            raise OSError(ctypes.get_errno(), "prctl")


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no number of the system call")
def test_a_seccomp_profile_is_named() -> None:
    line = error_line(rtgauge(*PROBE, preexec_fn=forbid_setscheduler), 3)
    assert "seccomp profile" in line
    assert "allow sched_setscheduler" in line
    assert "--policy other" not in line  # which needs the same system call


def test_a_user_namespace_is_named() -> None:
    """Root of a namespace has CAP_SYS_NICE, which counts nothing outside of it."""
    namespace = ("unshare", "--user", "--map-root-user")
    line = error_line(rtgauge(*PROBE, before=namespace, preexec_fn=limits(rtprio=0)), 3)
    assert "user namespace" in line
    assert "host's user namespace" in line


@pytest.fixture
def cpuset_of_one_cpu() -> Iterator[Path]:
    """A cpuset (cgroup v1) with the first CPU only."""
    if not (CPUSET_CGROUP / "cpuset.cpus").exists() or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs and the cpuset controller of cgroup v1")
    group = CPUSET_CGROUP / f"rtgauge-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpuset.mems").write_text((CPUSET_CGROUP / "cpuset.mems").read_text())
        (group / "cpuset.cpus").write_text(str(min(os.sched_getaffinity(0))))
        yield group
    finally:
        group.rmdir()


def test_a_cpuset_without_the_cpu_is_named(cpuset_of_one_cpu: Path) -> None:
    def join() -> None:
        (cpuset_of_one_cpu / "cgroup.procs").write_text(str(os.getpid()))

    cpu, first = max(os.sched_getaffinity(0)), min(os.sched_getaffinity(0))
    line = error_line(rtgauge(*PROBE, "--cpu", cpu, preexec_fn=join), 2)
    assert not missing(line, "cpuset", f"not allow CPU {cpu}", f"only {first}", "choose", "cpuset.cpus")
    good(rtgauge(*PROBE, "--cpu", first, preexec_fn=join))


def test_a_read_only_sys_is_named(tmp_path: Path) -> None:
    """A deployment writes to /sys, which is read-only in a container without privileges."""
    read_only = ("unshare", "--mount", "sh", "-c", 'mount -o remount,ro,bind /sys && exec "$@"', "sh")
    words = ("run", "--load", "idle", "--duration", "300ms", "--deployment", "M", *SHORT)
    completed = rtgauge(*words, "--out", tmp_path, before=read_only, env={"COLUMNS": "1000"})
    assert "read-only, as in a container" in completed.stderr
    assert "(rtgauge deploy apply)" in completed.stderr
