# SPDX-License-Identifier: MIT
"""Deployments on this machine: measured in, held, refused; and everything is put back whatever happens."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.processes import find
from tests.e2e.test_permissions import ORDINARY
from tests.support.cli import PATIENCE_S, SHORT, end, error_line, good, only_error, rtgauge, start, wait_until
from tests.support.real_record import document

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.engine, pytest.mark.root, pytest.mark.alone]

CPU = Path("/sys/devices/system/cpu")
CPUSET = Path("/sys/fs/cgroup/cpuset")
JOURNAL = Path("/var/lib/rtgauge/journal.ndjson")
QUICK = ("--load", "idle", "--duration", "300ms", *SHORT)
several_cpus = pytest.mark.skipif(
    (os.cpu_count() or 1) < 2, reason="needs two CPUs: one is switched off or isolated"
)


def state() -> dict[str, Any]:
    """What deployments touch."""
    paths = [
        *CPU.glob("cpu[0-9]*/online"),
        *CPU.glob("cpu[0-9]*/cpuidle/state*/disable"),
        *CPU.glob("cpu[0-9]*/cpufreq/scaling_governor"),
        *Path("/proc/irq").glob("*/smp_affinity_list"),
        Path("/proc/irq/default_smp_affinity"),
        Path("/sys/devices/virtual/workqueue/cpumask"),
        Path("/proc/sys/kernel/timer_migration"),
        Path("/proc/sys/kernel/sched_rt_runtime_us"),
        CPU / "online",
        *CPUSET.glob("cpuset.*cpu*"),
        *CPUSET.glob("cpuset.sched_load_balance"),
    ]
    values: dict[str, Any] = {str(path): path.read_text() for path in paths if path.exists()}
    values["groups"] = sorted(
        str(path) for root in (Path("/sys/fs/cgroup"), CPUSET) for path in root.glob("rtgauge-*")
    )
    values["cpus of this"] = os.sched_getaffinity(0)
    return values


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[dict[str, Any]]:
    """Each test leaves the machine as it was; waits for another run on it to end."""
    good(rtgauge("restore"))
    before = state()
    yield before
    rtgauge("restore", "--applied")
    assert state() == before


def steps_of(out: Path) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """(deployment -> its step, the run) of the one record in the folder."""
    (record,) = out.iterdir()
    steps = [document(path.read_text()) for path in sorted(record.glob("steps/*/step.json"))]
    return {step["key"]["deployment"]: step for step in steps}, document((record / "run.json").read_text())


@several_cpus
def test_every_deployment_is_measured_or_left_out_with_a_reason(tmp_path: Path) -> None:
    names = ["CHM", "HM", "HMI", "M", "MI", "Single", "as-is", "c-states=off,isolate=1"]
    good(rtgauge("run", *QUICK, "--deployment", ";".join(names), "--seed", 3, "--out", tmp_path))
    steps, run = steps_of(tmp_path)
    left = {missing["what"].removeprefix("deployment "): missing for missing in run["left_out"]}
    assert set(steps) | set(left) == set(names)
    assert not set(steps) & set(left)
    assert all(value["reason"] and value["remedy"] for value in left.values())
    assert "as-is" in steps
    assert steps["as-is"]["deployment"] is None
    if "Single" in steps:
        assert len(steps["Single"]["cpus"]) == 1
    for name in {"MI", "HMI", "c-states=off,isolate=1"} & set(steps):
        report = steps[name]["deployment"]
        assert steps[name]["cpus"]
        assert min(steps["as-is"]["cpus"]) not in steps[name]["cpus"]
        assert report["isolated"]
        assert report["settings"]
    shown = good(rtgauge("show", *tmp_path.iterdir(), "--details")).stdout
    for name in set(steps) - {"as-is"}:
        report = steps[name]["deployment"]
        assert report["name"] == name
        assert report["not_put_back"] == []
        assert {setting["put_back"] for setting in report["settings"] if setting["error"] is None} <= {
            "restored",
            "gone",
        }
        assert name in shown


def test_a_plan_may_name_deployments(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'name = "p"\n[matrix]\nprobe = "wakeup"\nduration = "200ms"\nwarm-up = "0s"\ndeployment = '
        '["as-is", "c-states=off"]\n'
    )
    good(rtgauge("run", plan, "--repeats", 2, "--out", tmp_path / "out"))
    _, run = steps_of(tmp_path / "out")
    assert sorted(key["deployment"] for key in run["planned"]) == [
        "as-is",
        "as-is",
        "c-states=off",
        "c-states=off",
    ]


def test_wrong_words_are_one_line(tmp_path: Path) -> None:
    for words, part in (
        (("run", "--deployment", "HX"), "unknown deployment 'HX'"),
        (("deploy", "apply", "cores=no"), "cores must be all"),
        (("deploy", "cmdline", "x"), "unknown"),
    ):
        assert part in error_line(rtgauge(*words), 2)
    line = error_line(rtgauge("run", "--deployment", "CHM", "--set", "dma-latency=0"), 2)
    assert "keeps C-states off" in line


@pytest.fixture
def isolated(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that measures on an isolated CPU."""
    process = start(
        "run",
        "--load",
        "idle",
        "--duration",
        "20s",
        "--deployment",
        "MI",
        *SHORT,
        "--out",
        tmp_path / "out",
        log=tmp_path / "log",
    )
    try:
        wait_until(
            lambda: bool(list(tmp_path.glob("out/*/steps/.*.tmp/stream.ndjson"))) and state()["groups"] != [],
            "measuring in MI",
        )
        yield process
    finally:
        if process.poll() is None:
            end(process)


@several_cpus
def test_ctrl_c_puts_everything_back(isolated: subprocess.Popen[str], unchanged: dict[str, Any]) -> None:
    isolated.send_signal(signal.SIGINT)
    isolated.communicate(timeout=PATIENCE_S)
    assert isolated.returncode == 130
    assert state() == unchanged


@several_cpus
def test_after_kill_9_the_guard_puts_everything_back(
    isolated: subprocess.Popen[str], unchanged: dict[str, Any]
) -> None:
    isolated.kill()
    isolated.communicate()
    wait_until(lambda: state() == unchanged, "the guard to put everything back")


@several_cpus
def test_restore_undoes_everything_after_kill_9_of_the_guard(
    isolated: subprocess.Popen[str], unchanged: dict[str, Any]
) -> None:
    (guard,) = find(isolated.pid, "--lock --restore")
    others = find(isolated.pid, "rtgauge-engine")
    os.kill(guard, signal.SIGKILL)
    isolated.kill()
    isolated.communicate()
    wait_until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in others), "all to end")
    assert state()["groups"] != []
    assert "restored" in good(rtgauge("restore")).stdout
    assert state() == unchanged
    assert "nothing had to be restored" in good(rtgauge("restore")).stdout


@several_cpus
def test_what_is_held_stays_until_it_is_taken_back(tmp_path: Path, unchanged: dict[str, Any]) -> None:
    assert "MI is applied" in good(rtgauge("deploy", "apply", "MI")).stdout
    held = state()
    assert "already applied" in error_line(rtgauge("deploy", "apply", "M"), 3)
    assert "MI is applied" in good(rtgauge("deploy", "show")).stdout
    assert document(good(rtgauge("audit", "--facts", "--json")).stdout)["deployment"]["held"] == "MI"
    assert "undo it first" in error_line(
        rtgauge("run", *QUICK, "--deployment", "M", "--out", tmp_path / "a"), 3
    )
    good(rtgauge("run", *QUICK, "--out", tmp_path / "out"))
    steps, run = steps_of(tmp_path / "out")
    assert "deployment-held" in [mark["name"] for mark in run["marks"]]
    assert 0 not in steps["as-is"]["cpus"]
    assert "MI is still applied" in good(rtgauge("restore")).stdout
    assert state() == held
    assert "restored" in good(rtgauge("restore", "--applied")).stdout
    assert state() == unchanged


def test_without_root_nothing_is_changed(unchanged: dict[str, Any]) -> None:
    home: dict[str, str | None] = {"HOME": "/nonexistent", "XDG_STATE_HOME": None}
    line = error_line(rtgauge("deploy", "apply", "c-states=off,cores=1", before=ORDINARY, env=home), 3)
    assert "cannot" in line
    assert state() == unchanged


def in_namespace(script: str, *words: object) -> subprocess.CompletedProcess[str]:
    """rtgauge in a mount namespace of its own, after a script of mounts."""
    return rtgauge(*words, before=("unshare", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh"))


@several_cpus
@pytest.mark.skipif(not (CPU / "cpu1/online").exists(), reason="CPU 1 cannot be switched off here")
def test_a_read_only_sys_is_reported(unchanged: dict[str, Any]) -> None:
    line = error_line(in_namespace("mount -o remount,bind,ro /sys", "deploy", "apply", "Single"), 3)
    assert "read-only" in line
    assert "nothing was changed" in line
    assert state() == unchanged


@several_cpus
@pytest.mark.skipif(not (CPU / "cpu1/online").exists(), reason="CPU 1 cannot be switched off here")
def test_a_cpu_that_refuses_leaves_its_deployment_out(tmp_path: Path, unchanged: dict[str, Any]) -> None:
    script = f"mount --bind {CPU}/cpu1/online {CPU}/cpu1/online && mount -o remount,bind,ro {CPU}/cpu1/online"
    good(in_namespace(script, "run", *QUICK, "--deployment", "as-is,Single", "--out", tmp_path))
    steps, run = steps_of(tmp_path)
    assert set(steps) == {"as-is"}
    (left,) = run["left_out"]
    assert left["what"] == "deployment Single"
    assert "cpu1/online" in left["reason"]
    assert state() == unchanged


@several_cpus
@pytest.mark.skipif(not (CPUSET / "cpuset.cpus").exists(), reason="no version 1 cpuset here")
def test_a_busy_cpuset_is_reported(tmp_path: Path) -> None:
    busy = CPUSET / "test-busy"
    busy.mkdir()
    try:
        (busy / "cpuset.cpus").write_text("1")
        assert "the cpuset /test-busy uses CPU 1" in error_line(rtgauge("deploy", "apply", "MI"), 3)
        good(rtgauge("run", *QUICK, "--deployment", "MI,as-is", "--out", tmp_path))
        assert "test-busy" in steps_of(tmp_path)[1]["left_out"][0]["reason"]
    finally:
        busy.rmdir()


@several_cpus
def test_hotplug_gives_back_what_it_erases(unchanged: dict[str, Any]) -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        os.sched_setaffinity(sleeper.pid, {1})
        completed = rtgauge("deploy", "apply", "cores=1")
        if completed.returncode == 3:
            assert "cannot" in error_line(completed, 3)
            return
        assert 1 not in os.sched_getaffinity(sleeper.pid)
        good(rtgauge("restore", "--applied"))
        assert os.sched_getaffinity(sleeper.pid) == {1}
    finally:
        sleeper.kill()
        sleeper.wait()


def test_the_controller_sets_priorities_and_puts_them_back(tmp_path: Path) -> None:
    loud = subprocess.Popen(["sleep", "60"])
    try:
        os.sched_setscheduler(loud.pid, os.SCHED_FIFO, os.sched_param(97))
        good(rtgauge("run", *QUICK, "--controller", "--raise", "no-such-device", "--out", tmp_path))
        assert os.sched_getparam(loud.pid).sched_priority == 97
    finally:
        loud.kill()
        loud.wait()
    steps, _ = steps_of(tmp_path)
    report = steps["as-is"]["deployment"]
    assert report["controller"] is True
    assert report["not_found"] == ["no-such-device"]
    assert any(
        re.match(rf"thread:{loud.pid}:", setting["path"]) and setting["now"] == "fifo 80"
        for setting in report["settings"]
    )
    assert any(setting["now"] == "fifo 10 reset-on-fork" for setting in report["settings"])
    assert {setting["put_back"] for setting in report["settings"] if setting["error"] is None} <= {
        "restored",
        "gone",
    }


def test_what_to_boot_with_is_one_line() -> None:
    completed = good(rtgauge("deploy", "cmdline", "HM"))
    assert completed.stdout.count("\n") == 1
    assert "cpufreq.default_governor=performance" in completed.stdout
    assert "sysctl" in completed.stderr


@several_cpus
def test_the_study_chooses_and_measures_the_choice_under_load(
    tmp_path: Path, unchanged: dict[str, Any]
) -> None:
    words = (
        "run",
        "delgado2020",
        "--deployment",
        "M,Single",
        "--load",
        "cpu",
        "--duration",
        "500ms",
        "--set",
        "warm-up=0s",
        "--out",
        tmp_path,
    )
    completed = rtgauge(*words)
    if completed.returncode == 3:  # a machine with a single core, or whose CPUs cannot be switched off
        assert "left out" in completed.stderr
        return
    good(completed)
    (record,) = tmp_path.iterdir()
    chosen = re.search(r"^chosen +(\S+): ", completed.stdout, re.MULTILINE)
    assert chosen is not None
    steps = [document(path.read_text()) for path in sorted(record.glob("steps/*/step.json"))]
    assert sorted(step["key"]["deployment"] for step in steps[:2]) == ["M", "Single"]
    assert [(step["key"]["deployment"], step["key"]["load"]) for step in steps[2:]] == [(chosen[1], "cpu")]
    assert completed.stdout.index("Selection (chi-square)") < completed.stdout.index("chosen ")
    assert f"compared {record / 'compare.html'}" in completed.stdout
    assert (record / "compare.html").is_file()
    assert state() == unchanged


@several_cpus
@pytest.mark.slow
def test_a_study_that_was_stopped_is_gone_on_with(tmp_path: Path, unchanged: dict[str, Any]) -> None:
    words = (
        "run",
        "delgado2020",
        "--deployment",
        "M,Single",
        "--load",
        "cpu",
        "--duration",
        "1500ms",
        "--set",
        "warm-up=0s",
        "--out",
        tmp_path / "out",
    )
    log = tmp_path / "stderr"
    process = start(*words, log=log)
    try:
        wait_until(
            lambda: (
                any(path.stat().st_size for path in tmp_path.glob("out/*/steps/.*.tmp/stream.ndjson"))
                or process.poll() is not None
            ),
            "a step",
        )
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    if process.returncode == 3:  # a machine with a single core, or whose CPUs cannot be switched off
        assert "left out" in log.read_text()
        return
    assert process.returncode == 130
    (first,) = (tmp_path / "out").iterdir()
    assert f"rtgauge resume {first}" in log.read_text()
    assert state() == unchanged
    completed = good(rtgauge("resume", "delgado2020", "--json", "--out", tmp_path / "out"))
    content = document(completed.stdout)
    assert [run["run"]["state"] for run in content["runs"]] == ["complete"]
    assert content["choice"]["deployment"] in {"M", "Single"}
    assert {side["traits"]["deployment"] for side in content["comparison"]["sides"]} == {"M", "Single"}
    (loaded,) = [step for step in content["runs"][0]["steps"] if step["key"]["load"] != "idle"]
    assert (loaded["key"]["load"], loaded["key"]["deployment"]) == ("cpu", content["choice"]["deployment"])
    assert loaded["key"]["parameters"]["duration_ns"] == 1_500_000_000
    assert state() == unchanged
    only_error(rtgauge("resume", first.with_name(first.name.removesuffix(".partial"))).stderr)
