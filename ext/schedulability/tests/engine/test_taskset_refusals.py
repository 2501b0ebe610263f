# SPDX-License-Identifier: MIT
"""taskset: what it refuses, with one line that names the task or the cause."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine.stream import CPUS, refusal, refused, run

pytestmark = pytest.mark.engine
CPU = CPUS[0]
SHORT = ["--go", "--duration-ns=1000000", "--warm-up-ns=0", "--dma-latency-us=-1"]
GOOD = f"{CPU} 90 10000000 1000000 10000000 0 a"


@pytest.mark.parametrize(
    ("tasks", "expected_text"),
    [
        ("", "the tasks are missing"),
        ("nonsense", "task 1: write"),
        (f"{CPU} 90 10000000 1000000 10000000 0 ", "does not have 1 ... 200 bytes"),
        (f"{CPU} 90 10000000 1000000 10000000 0", "task 1: write"),
        (f"{CPU} 90 0 1000000 10000000 0 a", "period is not in"),
        (f"{CPU} 90 -5 1000000 10000000 0 a", "period is not in"),
        (f"{CPU} 90 10000000 10000001 10000000 0 a", "execution time is not in 1 ns ... its deadline"),
        (f"{CPU} 90 10000000 0 10000000 0 a", "execution time"),
        (f"{CPU} 0 10000000 1000000 10000000 0 a", "priority is not in 1 ... 99"),
        (f"{CPU} 100 10000000 1000000 10000000 0 a", "priority is not in 1 ... 99"),
        (f"{CPU} 90 10000000 1000000 10000000 -1 a", "offset"),
        (f"{CPU} 90 10000000 1000000 9999999999999 0 a", "deadline is not in"),
        ("99999 90 10000000 1000000 10000000 0 a", "CPU is out of range"),
        (GOOD + "\n" + GOOD, "task 2: another task has this name"),
        (GOOD + "\n" + GOOD[:-1] + "b", "task 2: another task of this CPU has this priority"),
        (GOOD[:-1] + "a" * 201, "does not have 1 ... 200 bytes"),
        ("\n".join(f"{CPU} {n + 1} 10000000 1000 10000000 0 t{n}" for n in range(65)), "at most 64 tasks"),
        (f"{CPU} 90 99999999999999999999 1 1 0 a", "task 1: write"),
    ],
)
def test_a_wrong_set(engine, tasks, expected_text):
    assert expected_text in refused(
        engine, "task-set", 2, "taskset", *SHORT, *([f"--tasks={tasks}"] if tasks else [])
    )


@pytest.mark.parametrize(
    ("words", "code", "expected_text"),
    [
        (
            ["--policy=deadline", f"--tasks={CPU} 90 10000000 1000000 20000000 0 a"],
            "task-set",
            "longer than the period",
        ),
        (["--pin=off", f"--tasks={GOOD}"], "usage", "--policy deadline"),
        (["--execution=both", f"--tasks={GOOD}"], "usage", "--execution both"),
        ([f"--tasks={CPU} 90 10000000 9600000 10000000 0 a"], "overload", "96.0 % of CPU"),
        (["--tasks=8191 90 10000000 1000000 10000000 0 a"], "cpu-missing", "there is no CPU 8191"),
    ],
)
def test_what_does_not_go(engine, words, code, expected_text):
    assert expected_text in refused(engine, code, 2, "taskset", *SHORT, *words)


@pytest.mark.parametrize(
    "length",
    [
        ["--duration-ns=10000000001", "--warm-up-ns=0"],
        ["--duration-ns=0", "--warm-up-ns=0"],
        ["--duration-ns=6000000000", "--warm-up-ns=5000000000"],
    ],
)
def test_a_forced_overload_is_short(engine, length):
    error = refused(
        engine,
        "overload",
        2,
        "taskset",
        "--go",
        "--force",
        f"--tasks={CPU} 90 10000000 10000000 10000000 0 a",
        *length,
    )
    assert "at most 10 s" in error


@pytest.mark.real_time
def test_deadline_says_what_the_kernel_wants(engine):
    error = refusal(
        engine,
        "deadline",
        3,
        "taskset",
        *SHORT,
        "--policy=deadline",
        "--pin=off",
        f"--tasks={CPU} 90 50000 5000 50000 0 a",
    )
    assert error["detail"]["errno"] in ("EINVAL", "EPERM")
    assert (error["detail"]["cpu"], error["detail"]["runtime_ns"], error["detail"]["period_ns"]) == (
        None,
        50000,
        50000,
    )
    if len(CPUS) > 1:
        detail = refusal(engine, "deadline", 3, "taskset", *SHORT, "--policy=deadline", f"--tasks={GOOD}")[
            "detail"
        ]
        assert (detail["errno"], detail["cpu"], detail["cap_sys_nice"]) == ("EPERM", CPU, True)


@pytest.mark.real_time
@pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs: on one CPU a deadline thread may be pinned")
def test_wakeup_says_why_a_pinned_thread_is_no_deadline_task(engine):
    detail = refusal(engine, "deadline", 3, "wakeup", *SHORT, "--policy=deadline", f"--cpu={CPU}")["detail"]
    assert detail == {
        "errno": "EPERM",
        "runtime_ns": 200_000,
        "period_ns": 1_000_000,
        "cpu": CPU,
        "cap_sys_nice": True,
        "seccomp": False,
        "user_namespace": False,
    }
    assert (
        refusal(
            engine,
            "deadline",
            3,
            "wakeup",
            *SHORT,
            "--policy=deadline",
            f"--cpu={CPU}",
            "--interval-ns=50000",
        )["detail"]["errno"]
        == "EINVAL"
    )


@pytest.mark.root
def test_without_permission_it_says_what_to_do(engine):
    nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
    ]
    detail = refusal(
        engine,
        "permission-rt",
        3,
        "taskset",
        *SHORT,
        f"--tasks={GOOD}",
        prefix=[*nobody, "prlimit", "--rtprio=0"],
    )["detail"]
    assert (detail["errno"], detail["other_allowed"]) == ("EPERM", True)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=60)
    | st.lists(
        st.lists(st.integers(-3, 2**64) | st.text("0123456789- a", max_size=5), max_size=8).map(
            lambda words: " ".join(map(str, words))
        ),
        max_size=4,
    ).map("\n".join)
)
def test_hostile_text_is_refused_in_one_line(engine, text):
    stream = run(engine, "taskset", *SHORT, f"--tasks={text}")
    assert stream.lines[-1]["type"] in {"error", "end"}
