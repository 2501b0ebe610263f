# SPDX-License-Identifier: MIT
"""Real kernels: what they are is seen, what is measured says that it is emulated, no verdict is based on
it.
"""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from ext.lab.tests.fake_lab import stock_kernel
from tests.lab.conftest import NEWEST
from tests.support.cli import PATIENCE_S, end, error_line, good, invoke, rtgauge, start, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.lab.conftest import Lab

    Measured = Callable[..., tuple[dict[str, Any], Path]]

GUESTS = ("debian", "debian-rt", "debian-arm64", "debian-rt-arm64")
SHORT = ("--duration", "2s", "--set", "warm-up=100ms", "--set", "interval=10ms")


NEWEST_GUESTS = [pytest.param(f"{name}{NEWEST}", marks=pytest.mark.newest) for name in GUESTS[:2]]


@pytest.fixture(scope="module", params=[*GUESTS, *NEWEST_GUESTS])
def name(request: pytest.FixtureRequest) -> str:
    """Each guest in turn; of this scope, so that all tests of a guest follow one another and it is booted
    once.
    """
    return str(request.param)


def architecture(name: str) -> str:
    return "aarch64" if name.endswith("-arm64") else "x86_64"


@pytest.mark.ci
def test_facts_and_audit_know_the_guest(lab: Lab, name: str) -> None:
    lab.boot(name)
    facts = json.loads(
        good(invoke("audit", "--facts", "--target", f"lab:{name}", "--json", env=lab.env)).stdout
    )
    assert facts["host"] == name
    assert facts["machine"]["virtual"] is True
    assert facts["machine"]["emulated"] is True
    assert facts["kernel"]["architecture"] == architecture(name)
    assert (facts["kernel"]["preemption"]["model"] == "PREEMPT_RT") == ("rt" in name)
    assert facts["cpu"]["online"] == "0-3"
    completed = invoke("audit", "--target", f"lab:{name}", "--json", "--all", env=lab.env)
    good(completed, 1)
    actual = {finding["rule"]: finding for finding in json.loads(completed.stdout)["findings"]}
    assert actual["not-emulated"]["result"] == "differs"


@pytest.mark.parametrize("guest", ["debian-riscv64"])
def test_a_riscv_guest_gives_a_complete_record(lab: Lab, measured: Measured, guest: str) -> None:
    lab.boot(guest)
    document, record = measured("--load", "idle", "--require", "period=10ms latency<=5s", *SHORT, status=4)
    (step,) = document["steps"]
    assert step["total"]["count"] + step["total"]["missed"] >= 100
    assert not document["run"]["left_out"]
    system = json.loads((record / f"targets/lab-{guest}/system.json").read_text())
    assert '"riscv64"' in json.dumps(system)
    assert "emulated" in {mark["name"] for mark in step["marks"]}


@pytest.mark.ci
def test_wakeup_idle_and_loaded(lab: Lab, measured: Measured, name: str) -> None:
    lab.boot(name)
    document, record = measured(
        "--load", "idle,cpu", "--require", "period=10ms latency<=5s", *SHORT, status=4
    )
    assert [step["key"]["load"] for step in document["steps"]] == ["idle", "cpu"]
    for step in document["steps"]:
        assert step["total"]["count"] + step["total"]["missed"] >= 100
        assert step["key"]["targets"] == {"self": f"lab:{name}"}
    assert not document["run"]["left_out"]
    assert "rtgauge-lab: ready" in (record / f"targets/lab-{name}/console.log").read_text()
    assert {verdict["word"] for verdict in document["run"]["verdicts"]} == {"cannot tell"}


WIRE_PLAN = """
name = "both-spaces"
order = "as-written"
[defaults]
path = "wire"
duration = "1500ms"
warm-up = "100ms"
[[step]]
probe = "periodic"
period = "40ms"
[[step]]
probe = "periodic"
period = "40ms"
space = "kernel"
context = "thread"
[[step]]
probe = "response"
interval = "20ms"
timeout = "2s"
[[step]]
probe = "response"
interval = "20ms"
timeout = "2s"
space = "kernel"
"""
STEPS_IN_KERNEL = {
    "periodic": ["interrupt-latency", "thread-latency", "service-time"],
    "response": ["interrupt-latency", "service-time"],
}


def loaded_modules(lab: Lab) -> list[str]:
    return [
        line.split()[0] for line in lab.run_in("cat /proc/modules").splitlines() if line.startswith("rtgauge")
    ]


def by_role(step: dict[str, Any], metric: str) -> dict[str, dict[str, Any]]:
    return {
        series["labels"]["role"]: series
        for series in step["series"]
        if series["metric"] == metric and "role" in series["labels"]
    }


@pytest.mark.ci
@pytest.mark.parametrize("name", GUESTS, indirect=True)
def test_tasks_in_user_and_in_kernel_space_over_the_wire(
    lab: Lab, measured: Measured, name: str, tmp_path: Path
) -> None:
    """The modules are built for this kernel, loaded, and gone again; the wire's own time stamps fit the
    probes' figures.
    """
    lab.boot(name)
    (tmp_path / "plan.toml").write_text(WIRE_PLAN)
    document, _ = measured(tmp_path / "plan.toml")
    assert not document["run"]["left_out"]
    assert [(step["key"]["probe"], step["key"]["parameters"]["space"]) for step in document["steps"]] == [
        (probe, space) for probe in ("periodic", "response") for space in ("user", "kernel")
    ]
    for step in document["steps"]:
        probe, in_kernel = step["key"]["probe"], step["key"]["parameters"]["space"] == "kernel"
        assert {mark["name"] for mark in step["marks"] if mark["severity"] == "invalid"} == set()
        segments = [series for series in step["series"] if "segment" in series["labels"]]
        assert [series["labels"]["segment"] for series in segments] == (
            STEPS_IN_KERNEL[probe] if in_kernel else []
        )
        assert all(series["count"] and series["min_ns"] >= 0 for series in segments)
        modules = [
            setting for setting in step["deployment"]["settings"] if setting["path"].startswith("module:")
        ]
        assert [setting["path"].rpartition("/")[2] for setting in modules] == [
            "rtgauge_core.ko", "rtgauge_wire.ko", *([f"rtgauge_{probe}.ko"] if in_kernel else []),
        ]  # fmt: skip
        assert {setting["put_back"] for setting in modules} == {"restored"}
        values = {result["name"]: result["values"] for result in step["results"]}
        # A busy host delays an emulated CPU, and a few edges then pass before they are time-stamped.
        assert values["wire"]["lost"] == 0
        assert 10 * values["wire"]["not_compared"] <= values["wire"]["compared"]
        check_reference(
            step,
            "self" if probe == "periodic" else "master",
            "latency" if probe == "periodic" else "response",
        )
    assert loaded_modules(lab) == []


def check_reference(step: dict[str, Any], role: str, metric: str) -> None:
    """The wire saw the edges that the task tells of, before the task read its clock. On a busy host, a few
    pass before they are time-stamped.
    """
    reported, difference = by_role(step, metric), by_role(step, "difference")[role]
    count = reported["wire"]["count"]
    assert 10 < count == difference["count"] <= reported[role]["count"] <= 1.1 * count
    assert difference["min_ns"] >= 0
    assert (
        reported[role]["sum_ns" if "sum_ns" in reported[role] else "mean_ns"]
        >= reported["wire"]["sum_ns" if "sum_ns" in reported["wire"] else "mean_ns"]
    )


def answers(lab: Lab) -> bool:
    """Whether the guest lets us in."""
    return rtgauge("lab", "shell", lab.up, "true", env=lab.env).returncode == 0


def measuring_engines(lab: Lab) -> list[str]:
    """Process ids, in the guest, of engines that run the probe."""
    script = (
        "for pid in $(pidof engine); do tr '\\0' ' ' </proc/$pid/cmdline | grep -q '^[^ ]*engine "
        "response' && echo $pid; done; true"
    )
    return lab.run_in(script).split()


DEAF = (
    "killall dropbear; until ! grep -q ^rtgauge /proc/modules; do sleep 0.2; done; dropbear -s -r "
    "/var/lib/rtgauge-lab/host-key"
)
"""Who was in is out, and nobody is let in until the modules are gone."""


@pytest.mark.parametrize("name", ["debian-rt"], indirect=True)
@pytest.mark.parametrize(
    "victim",
    [
        pytest.param("engine", marks=pytest.mark.ci),
        pytest.param("rtgauge", marks=pytest.mark.ci),
        "connection",
    ],
)
def test_kill_9_in_the_middle_leaves_no_module_behind(
    lab: Lab, name: str, tmp_path: Path, victim: str
) -> None:
    """Of the engine: rtgauge puts it back.

    Of rtgauge itself, or of its connection: the session's guard does, when its lease is over.
    """
    lab.boot(name)
    command = (
        "probe",
        "response",
        "--space",
        "kernel",
        "--duration",
        "60s",
        "--timeout",
        "2s",
        "--target",
        f"lab:{name}",
    )
    process = start(*command, env=lab.env, log=tmp_path / "log")
    try:
        wait_until(
            lambda: "[1/1]" in (tmp_path / "log").read_text() and bool(measuring_engines(lab)),
            "the measurement",
            240,
        )
        assert "rtgauge_response" in loaded_modules(lab)
        if victim == "rtgauge":
            process.kill()
        elif victim == "engine":
            lab.run_in(f"kill -9 {' '.join(measuring_engines(lab))}")
        else:
            lab.run_in(f"setsid sh -c '{DEAF}' </dev/null >/dev/null 2>&1 &")
        process.wait(240)
    finally:
        end(process)
    wait_until(
        lambda: answers(lab) and loaded_modules(lab) == [],
        f"the modules to be removed without the {victim}",
        120,
    )
    assert "rtgauge" not in lab.run_in("cat /sys/kernel/debug/gpio")


def test_the_network_and_scheduler_loads_run_in_a_guest(lab: Lab, measured: Measured) -> None:
    lab.boot("debian")
    document, _ = measured("--load", "network,scheduler", *SHORT)
    assert {step["key"]["load"] for step in document["steps"]} == {"network", "scheduler"}
    assert not document["run"]["left_out"]


def test_a_guest_boots_with_an_isolated_cpu_and_measures_it(lab: Lab, measured: Measured) -> None:
    lab.boot("debian", "isolcpus=2 nosmt")
    facts = json.loads(
        good(invoke("audit", "--facts", "--target", "lab:debian", "--json", env=lab.env)).stdout
    )
    assert facts["cpu"]["online"] == "0,2"
    assert facts["cpu"]["smt_active"] is False
    assert facts["cpu"]["isolated"] == "2"
    assert "isolcpus=2 nosmt" in facts["kernel"]["cmdline"]
    document, _ = measured("--load", "idle", *SHORT)
    assert all(step["cpus"] == [0, 2] for step in document["steps"])
    assert all({series["labels"]["cpu"] for series in step["series"]} == {0, 2} for step in document["steps"])


def power_cut(lab: Lab, name: str) -> None:
    """And wait until the guest answers again."""
    before = lab.run_in("cat /proc/sys/kernel/random/boot_id").strip()
    good(rtgauge("lab", "reset", name, env=lab.env))
    deadline = time.monotonic() + PATIENCE_S
    while True:
        completed = rtgauge("lab", "shell", name, "cat /proc/sys/kernel/random/boot_id", env=lab.env)
        if completed.returncode == 0 and completed.stdout.strip() != before:
            return
        assert time.monotonic() < deadline, completed.stderr


def test_a_power_cut_keeps_the_disk_and_the_host_key(lab: Lab) -> None:
    lab.boot("debian")
    lab.run_in("echo kept >/var/kept; sync; echo lost >/tmp/lost")
    power_cut(lab, "debian")
    assert lab.run_in("cat /var/kept; ls /tmp").split() == ["kept"]


@pytest.mark.ci
def test_the_next_run_puts_back_what_a_power_cut_has_left(lab: Lab, measured: Measured, engine: Path) -> None:
    lab.boot("debian")
    lab.copy_engine(engine)
    lab.run_in("echo old >/var/setting; sync")
    lab.run_in(
        "sleep 600 </dev/null >/dev/null 2>&1 & /tmp/engine set --run cut --owner-pid $! -- "
        "/var/setting new /proc/sys/vm/stat_interval 7; sync"
    )
    assert lab.run_in("cat /var/setting").strip() == "new"
    power_cut(lab, "debian")
    _, record = measured("--load", "idle", *SHORT)
    (mark,) = [
        mark
        for mark in json.loads((record / "run.json").read_text())["marks"]
        if mark["name"] == "restored-before"
    ]
    # a try before this one, cut off in the middle, has left the same
    assert re.search(r"[1-9] restored", mark["detail"])
    assert re.search(r"[1-9] dropped-after-reboot", mark["detail"])
    assert lab.run_in("cat /var/setting").strip() == "old"


def test_emulated_and_real_are_not_compared_unless_forced(
    lab: Lab, measured: Measured, tmp_path: Path
) -> None:
    lab.boot("debian")
    _, there = measured("--load", "idle", *SHORT)
    good(invoke("run", "--load", "idle", "--out", tmp_path / "local", *SHORT))
    (here,) = (tmp_path / "local").iterdir()
    assert "emulated" in error_line(invoke("compare", here, there), 2)
    compared = good(invoke("compare", here, there, "--force", "--no-intervals", "--json")).stdout
    assert "emulated" in compared


def test_a_guest_that_runs_is_listed_and_not_booted_twice(lab: Lab) -> None:
    lab.boot("debian")
    listed = lab.listed("debian")
    assert listed["running"]["accelerator"] == "tcg"
    # several words are a program and its arguments, one is a line for the shell
    assert lab.run_in("sh", "-c", "echo one  $((1 + 1))") == "one 2\n"
    assert lab.run_in("echo three | cat") == "three\n"
    assert "already running" in error_line(rtgauge("lab", "boot", "debian", env=lab.env), 2)
    assert "is running" in error_line(rtgauge("lab", "rm", "debian", env=lab.env), 2)


def test_a_kernel_of_ones_own(lab: Lab, tmp_path: Path) -> None:
    lab.boot("debian")
    lab.stop()
    kept = stock_kernel()
    (tmp_path / "overlay/etc").mkdir(parents=True)
    (tmp_path / "overlay/etc/own").write_text("mine\n")
    kernel = next(kept.glob("vmlinuz-*"))
    good(
        rtgauge(
            "lab",
            "add",
            "own",
            "--kernel",
            kernel,
            "--modules",
            kept,
            "--overlay",
            tmp_path / "overlay",
            "--append",
            "quiet",
            env=lab.env,
        )
    )
    lab.boot("own")
    assert lab.run_in("cat /etc/own; cat /proc/cmdline").split()[0] == "mine"
    lab.stop()
    good(rtgauge("lab", "rm", "own", env=lab.env))
    assert "not have a guest 'own'" in error_line(rtgauge("lab", "boot", "own", env=lab.env), 2)


def test_a_kernel_that_does_not_come_up_shows_its_console(lab: Lab, tmp_path: Path) -> None:
    lab.boot("debian")
    lab.stop()
    kernel = next(stock_kernel().glob("vmlinuz-*"))
    good(
        rtgauge(
            "lab",
            "add",
            "broken",
            "--kernel",
            kernel,
            "--append",
            "rdinit=/nowhere root=/dev/nothing",
            env=lab.env,
        )
    )
    line = error_line(rtgauge("lab", "boot", "broken", "--accel", "tcg", env=lab.env, timeout=240), 3)
    assert "panicked" in line
    assert "console" in line
    assert lab.listed("broken")["running"] is None
