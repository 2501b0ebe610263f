# SPDX-License-Identifier: MIT
"""Stalls that need a kernel module, or a guest that is stopped from outside: `rtgauge selftest` finds and
names them, on the terminal and on the page.

The first runs on a guest whose clock counts its instructions, and whose CPU is never idle meanwhile: other
work of this machine takes nothing from it.
PREEMPT_RT keeps its network from delaying the measured thread by as much as a stall. Still the bounds are
wide, and no size is asserted.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rtgauge.explain.analysis.culprits import explained_steps
from rtgauge.explain.analysis.explanation import Kind, sum_words
from rtgauge.record.reader import Record
from rtgauge_ext.lab.headers import headers_tree
from tests.lab.conftest import NEWEST
from tests.lab.kmod_guests import KMOD
from tests.support.cli import end, good, invoke, rtgauge, start

if TYPE_CHECKING:
    from tests.lab.conftest import Lab


PROGRAMS = Path(__file__).parent / "programs"


def self_test(lab: Lab, tmp_path: Path, *words: str) -> tuple[dict[str, dict[str, Any]], Record]:
    """(kind -> its row, the record) of a self test in the guest that is up."""
    completed = invoke(
        "selftest", "--target", f"lab:{lab.up}", *words, "--json", "--out", tmp_path / "records", env=lab.env
    )
    assert completed.returncode in {0, 1, 4}, completed.stderr
    result = json.loads(completed.stdout)
    rows = {row["kind"]: row for row in result["kinds"]}
    for row in rows.values():
        assert row["injected"] >= 2, rows
        assert row["found"] >= 0.5 * row["injected"], rows
    record = Record.open(Path(result["record"]))
    for step in explained_steps(record):
        assert all(
            sum(part.ns for part in explanation.parts) == explanation.latency_ns
            for explanation in step.explanations
        )
    return rows, record


@pytest.mark.ci
def test_a_function_that_holds_off_interrupts_is_named(lab: Lab, tmp_path: Path) -> None:
    tree = headers_tree("x86_64", print)
    (release,) = [release for release in tree.releases() if "-rt-" in release]
    (module,), _ = tree.make(release, KMOD / "test" / "stall", tmp_path, ["-s", "W=1", "KCFLAGS=-Werror"])
    lab.boot("debian-rt", icount=True)
    with module.open("rb") as content:
        good(rtgauge("lab", "shell", "debian-rt", "cat >/tmp/rtgauge_stall.ko", env=lab.env, stdin=content))
    lab.run_in("insmod /tmp/rtgauge_stall.ko")
    try:
        rows, record = self_test(
            lab,
            tmp_path,
            "--cpu",
            "0",
            "--kinds",
            "irqs-off,preempt-off",
            "--length",
            "500us",
            "--count",
            "40",
        )
    finally:
        lab.run_in("until rmmod rtgauge_stall; do sleep 0.2; done")
    for row in rows.values():
        assert row["named"] >= 0.5 * row["injected"], rows
        assert row["unattributed_median_ns"] <= 5_000, rows
    page = (record.path / "report.html").read_text()
    assert "in rtgauge_stall_irqs_off" in page
    assert "could not be preempted in" in page
    assert all(f"figure-explained-{step.step.id}" in page for step in explained_steps(record))


@pytest.mark.ci
def test_a_guest_stopped_from_outside_ran_no_software(lab: Lab, tmp_path: Path) -> None:
    lab.boot("debian")
    rows, record = self_test(lab, tmp_path, "--kinds", "stopped", "--count", "6")
    assert rows["stopped"]["named"] >= 0.5 * rows["stopped"]["found"], rows
    reported = json.loads(good(invoke("show", record.path, "--why", "--json", env=lab.env)).stdout)
    assert any(
        "no software ran on CPUs 0-3" in known["sentence"] for known in reported["steps"][0]["latencies"]
    )


GUESTS = ("debian", "debian-rt")
NEWEST_GUESTS = [pytest.param(f"{name}{NEWEST}", marks=pytest.mark.newest) for name in GUESTS]


@pytest.mark.parametrize("name", [*GUESTS, *NEWEST_GUESTS])
def test_stalls_of_a_program_in_the_guest_are_named(lab: Lab, tmp_path: Path, name: str) -> None:
    """Time that the host takes is no doubt there. PREEMPT_RT leaves out `timers`, which cannot occur there."""
    lab.boot(name, icount=True)
    rows, record = self_test(lab, tmp_path, "--cpu", "0", "--kinds", "hog,catch-up,timers", "--count", "24")
    assert set(rows) == {"hog", "catch-up"} | (set() if "-rt" in name else {"timers"})
    for row in rows.values():
        assert row["named"] >= 0.8 * row["injected"], rows
    doubts = [
        doubt for step in explained_steps(record) for known in step.explanations for doubt in known.doubts
    ]
    assert not [doubt for doubt in doubts if "the host of this virtual machine" in doubt]


BUDGET = r"""
/* Every 200 ms it computes for 4 ms, twice its budget. */
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(void)
{
    struct sched_attr attr = {.size = sizeof(attr), .sched_policy = 6, .sched_runtime = 2000000,
        .sched_deadline = 20000000, .sched_period = 20000000};
    struct timespec next;

    if (syscall(SYS_sched_setattr, 0, &attr, 0))
        return 1;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (;;) {
        next.tv_nsec += 200000000;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
        for (long long end = cpu_ns() + 4000000; cpu_ns() < end;)
            ;
    }
}
"""


def copy_program(lab: Lab, source: Path, folder: Path) -> str:
    """Compile a program and copy it to the guest; return its path there."""
    built, path = folder / source.stem, f"/tmp/{source.stem}"
    subprocess.run(["gcc", "-static", "-O1", "-pthread", source, "-o", built], check=True)
    with built.open("rb") as program:
        copy = f"cat >{path} && chmod 755 {path}"
        good(rtgauge("lab", "shell", lab.up, copy, env=lab.env, stdin=program))
    return path


@pytest.mark.newest
def test_kernel_events_name_a_used_up_deadline_budget(lab: Lab, tmp_path: Path) -> None:
    """And no dynamic event is left."""
    lab.boot("debian-rt-newest", icount=True)
    (tmp_path / "budget.c").write_text(BUDGET)
    program = copy_program(lab, tmp_path / "budget.c", tmp_path)
    words = ("--duration", "6s", "--save", "-o", tmp_path / "records", "--", program)
    good(invoke("watch", "--target", f"lab:{lab.up}", *words, env=lab.env))
    (record,) = (tmp_path / "records").iterdir()
    (step,) = explained_steps(Record.open(record))
    budgets = [
        part.ns
        for known in step.explanations
        for part in known.parts
        if part.culprit.mechanism == "its deadline budget"
    ]
    assert sum(budgets) > 10_000_000, [sum_words(known) for known in step.explanations]
    assert "sched_dl_throttle" in str(step.step.explain)
    assert lab.run_in("cat /sys/kernel/tracing/dynamic_events") == ""


DYNAMIC, FOREIGN = "/sys/kernel/tracing/dynamic_events", "t:foreign/mine sched_dl_throttle_tp cpu"


@pytest.mark.newest
def test_restore_removes_dynamic_events_after_kill_9_but_not_those_of_others(
    lab: Lab, tmp_path: Path
) -> None:
    lab.boot("debian-rt-newest", icount=True)
    lab.run_in(f"echo '{FOREIGN}' >>{DYNAMIC}")
    others = lab.run_in(f"cat {DYNAMIC}")
    words = ("--cpu", "0", "--duration", "60s", "--explain")
    process = start("probe", "wakeup", "--target", f"lab:{lab.up}", *words, env=lab.env, log=tmp_path / "log")
    try:
        lab.run_in(f"until grep -q sched_set_need_resched {DYNAMIC}; do sleep 0.2; done")
        # the probe, its guard and the session's guard at once: nobody is left who could put anything back
        lab.run_in("kill -9 $(pidof engine)")
        process.kill()
    finally:
        end(process)
    assert "rtgauge_" in lab.run_in(f"cat {DYNAMIC}")
    assert "restored" in lab.command("restore").stdout
    assert lab.run_in(f"cat {DYNAMIC}") == others
    assert lab.run_in("ls /sys/kernel/tracing/instances") == ""
    lab.run_in(f"echo -:foreign/ >>{DYNAMIC}")


@pytest.mark.newest
def test_the_server_of_a_scheduler_extension_is_named(lab: Lab, tmp_path: Path) -> None:
    lab.boot("debian-rt-newest", icount=True)
    lab.run_in(copy_program(lab, PROGRAMS / "register_scheduler.c", tmp_path))
    program = copy_program(lab, PROGRAMS / "starve.c", tmp_path)
    words = ("--threads", "victim", "--duration", "5s", "--save", "-o", tmp_path / "records", "--", program)
    try:
        good(invoke("watch", "--target", f"lab:{lab.up}", *words, env=lab.env))
    finally:
        lab.stop()  # and the extension
    (record,) = (tmp_path / "records").iterdir()
    (step,) = explained_steps(Record.open(record))
    servers = [
        part for known in step.explanations for part in known.parts if part.culprit.kind is Kind.THROTTLED
    ]
    reported = [sum_words(known) for known in step.explanations]
    assert sum(part.ns for part in servers) > 10_000_000, reported
    assert {part.culprit.mechanism for part in servers} == {"the ext server"}, reported
