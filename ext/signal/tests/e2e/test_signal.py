# SPDX-License-Identifier: MIT
"""periodic and response as a user runs them: alone, in a plan, taken apart, under their loads; and what is
left when they are killed.
"""

from __future__ import annotations

import json
import os
import re
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.e2e.processes import alive, command_line, family, find
from tests.support.cli import PATIENCE_S, end, error_line, good, invoke, start, wait_until
from tests.support.trace_instance import engines, instance_of, instances, wait_until_removed

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.real_time


def probe(*words: object) -> dict[str, Any]:
    (step,) = json.loads(good(invoke("probe", *words, "--json")).stdout)["steps"]
    return step


def test_response_has_a_line_for_the_whole_and_its_counters() -> None:
    step = probe("response", "--path", "loop:pipe", "--interval", "1ms", "--cycles", 200, "--timeout", "5s")
    (series,) = step["series"]
    assert series["labels"]["role"] == "master"
    assert series["count"] == step["total"]["count"] == 200
    (result,) = step["results"]
    assert (result["values"]["stimuli"], result["values"]["lost"]) == (200, 0)
    assert step["total"]["missed"] == result["values"]["skipped"]


def test_the_total_of_periodic_is_what_the_task_itself_sees() -> None:
    step = probe("periodic", "--period", "4ms", "--cycles", 200)
    by = {(series["metric"], series["labels"]["role"]): series for series in step["series"]}
    assert list(by) == [
        ("latency", "self"),
        ("jitter", "self"),
        ("latency", "observer"),
        ("jitter", "observer"),
    ]
    assert step["total"]["count"] == by["latency", "self"]["count"]
    assert by["jitter", "self"]["min_ns"] < 0 < by["jitter", "self"]["max_ns"]
    assert abs(by["jitter", "self"]["p50_ns"]) < by["jitter", "self"]["max_ns"]


def test_the_terminal_shows_both_at_any_width() -> None:
    for columns in ("80", "160"):
        completed = good(
            invoke("probe", "periodic", "--period", "4ms", "--cycles", 50, env={"COLUMNS": columns})
        )
        assert "observer" in completed.stdout
        assert "jitter" in completed.stdout
        completed = good(
            invoke("probe", "response", "--interval", "1ms", "--cycles", 50, env={"COLUMNS": columns})
        )
        assert "Worst response" in completed.stdout
        assert max(map(len, completed.stdout.splitlines())) <= int(columns)


PLAN = """
name = "signals"
order = "as-written"
[defaults]
warm-up = "10ms"
[[step]]
probe = "periodic"
period = "4ms"
cycles = 50
timer = "timerfd"
[[step]]
probe = "response"
interval = "2ms"
cycles = 50
load = "swarm:5"
"""


def test_a_plan_holds_both_with_a_load_and_has_a_page(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    completed = good(invoke("run", tmp_path / "plan.toml", "--out", tmp_path / "out", "--json"))
    document = json.loads(completed.stdout)
    assert [(step["key"]["probe"], step["key"]["load"], step["id"]) for step in document["steps"]] == [
        ("periodic", "idle", "01-periodic-idle"),
        ("response", "swarm:5", "02-response-swarm-5"),
    ]
    (record,) = (tmp_path / "out").iterdir()
    assert "response" in (record / "report.html").read_text()
    good(invoke("show", record))


@pytest.mark.root
@pytest.mark.tracefs
def test_the_parts_are_reported_and_the_instance_removed() -> None:
    step = probe("response", "--path", "loop:udp", "--interval", "1ms", "--cycles", 200, "--trace-parts")
    segments = [series["labels"]["segment"] for series in step["series"][1:]]
    assert segments == ["interrupt-latency", "service-time", "scheduling-latency", "scheduling-duration"]
    assert step["total"]["count"] == 200
    (setting,) = step["deployment"]["settings"]
    assert re.fullmatch("trace:rtgauge-[0-9a-f]{8}", setting["path"])
    assert (setting["wanted"], setting["put_back"]) == ("present", "restored")
    assert setting["path"].removeprefix("trace:") not in instances()


@pytest.mark.root
@pytest.mark.tracefs
@pytest.mark.parametrize("victim", ["host", "engine"])
def test_after_kill_9_no_instance_is_left(tmp_path: Path, victim: str) -> None:
    process = start(
        "probe", "response", "--interval", "1ms", "--duration", "60s", "--trace-parts", log=tmp_path / "log"
    )
    try:
        wait_until(lambda: bool(engines(process.pid, "response")), "the engine")
        (name,) = {instance_of(pid) for pid in engines(process.pid, "response")} - {None}
        wait_until(lambda: name in instances(), "the instance")
        below = family(process.pid)
        if victim == "host":
            process.send_signal(signal.SIGKILL)
        else:
            for pid in engines(process.pid, "response"):
                with suppress(ProcessLookupError):  # the slave ends with its master
                    os.kill(pid, signal.SIGKILL)
        process.wait(PATIENCE_S)
        wait_until_removed(name or "")
        wait_until(
            lambda: not [words for words in alive(below) if " response " in words], "master and slave to end"
        )
    finally:
        end(process)


@pytest.mark.parametrize(
    ("words", "status", "reported"),
    [
        (["response", "--path", "loop:smoke"], 2, "is not a signal path"),
        (["response", "--role", "master"], 2, "does not leave the machine"),
        (["response", "--cycles", "3", "--duration", "1s"], 2, "not both"),
        (
            ["periodic", "--path", "gpio:/dev/gpiochip77:1", "--role", "master"],
            3,
            "there is no GPIO chip /dev/gpiochip77",
        ),
        (
            ["response", "--path", "udp:no-such-host.invalid:1", "--role", "master"],
            3,
            "cannot find the address of the host",
        ),
        (
            [
                "response",
                "--path",
                "udp:127.0.0.1:9",
                "--role",
                "master",
                "--timeout",
                "5ms",
                "--duration",
                "1s",
            ],
            3,
            "start the slave first",
        ),
        (["response", "--load", "read", "--cycles", "5"], 2, "say what to read"),
        (["response", "--load", "swarm:no"], 2, "1 to 5000"),
    ],
)
def test_what_is_wrong_is_one_line(words: list[str], status: int, reported: str) -> None:
    assert reported in error_line(invoke("probe", *words), status)


def test_a_slave_without_a_master_says_so_once() -> None:
    completed = invoke(
        "probe", "response", "--path", "udp:127.0.0.1:7013", "--role", "slave", "--duration", "1s"
    )
    answer, _, rest = good(completed, 3).stdout.partition("\n")
    assert answer.startswith("Nothing was measured: no stimulus came on udp:127.0.0.1:7013")
    assert "nothing-measured" not in rest


def test_ctrl_c_ends_in_order(tmp_path: Path) -> None:
    process = start("probe", "response", "--duration", "60s", "--json", log=tmp_path / "log")
    try:
        wait_until(lambda: "[1/1]" in (tmp_path / "log").read_text(), "the step")
        wait_until(measuring(process.pid), "the engine")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 130
    assert "Traceback" not in (tmp_path / "log").read_text()
    for step in json.loads(out)["steps"] if out else []:
        assert step["end_reason"] == "stopped"


def measuring(pid: int) -> Callable[[], bool]:
    """Whether a response engine runs below this process."""

    def is_measuring() -> bool:
        return any("guard" in command_line(engine) for engine in find(pid, " response "))

    return is_measuring
