# SPDX-License-Identifier: MIT
"""What people type at first leads to a command or an option of rtgauge."""

from __future__ import annotations

import pytest

from rtgauge.cli.arguments import given_command, rewritten
from rtgauge.errors import InputError
from tests.support.command_line import refused

LEADS_TO = {
    "check": "run --require",
    "view latest": "show",
    "open latest": "show latest --page",
    "report latest": "show latest --page",
    "latency": "probe wakeup",
    "cyclictest": "probe wakeup",
    "timerlat": "probe wakeup --space kernel",
    "osnoise": "probe noise",
    "monitor ./loop": "watch",
    "trace ./loop": "watch",
    "top": "watch",
    "bench": "run",
    "test": "run --require",
    "start": "run",
    "deadline": "run --require",
    "loop": "watch",
    "diff A B": "compare",
    "undo": "restore",
    "reset": "restore",
    "rollback": "restore",
    "delete latest": "rm -r",
    "why": "show latest --why",
    "explain latest": "show latest --why",
    "results": "list",
    "ls": "list",
    "wakeup": "probe wakeup",
    "noise": "probe noise",
    "standard": "run standard",
    "version": "--version",
    "continue": "resume",
    "stress": "--load cpu",
    "ftrace": "--explain",
    "validate": "run --require",
    "stop": "restore",
    "pdf latest": "show latest --page",
    "json latest": "show latest --json",
    "details latest": "show latest --details",
    "ssh root@board": "--target ssh://",
    "watch --interval 1ms": "--period",
    "gate --max-regression 5%": "--larger-than",
    "gate --old A --new B": "--baseline",
    "show latest --plot": "--page",
    "run --breaktrace 100": "--stop-at",
    "run --latency 100us": "--require",
    "run --csv a.csv": "rtgauge export",
    "run --period 1ms": "--interval",
    "run --loads cpu": "--load",
    "run --time 10s": "--duration",
    "run --prio 80": "--priority",
    "run --host board": "--target",
    "run --max 100us": "--require",
    "run -p 1000": "--interval",
    "run -m": "--memory-lock",
    "run -t": "--cpu",
    "run -q": "--json",
    "run -P 80": "--priority",
    "probe wakeup --affinity 1": "--cpu",
    "watch 1234": "--pid 1234",
    "watch --name loop": "--program",
    "watch --process 12": "--pid",
    "compare --label a=b": "--side",
    "show latest --html": "--page",
    "resume --load cpu": "rtgauge resume keeps the settings of the run",
}


@pytest.mark.parametrize(("typed", "leads_to"), LEADS_TO.items())
def test_a_wrong_guess_leads_on(
    typed: str, leads_to: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert leads_to in refused(monkeypatch, capfd, *typed.split())


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("help", "--help"),
        ("help run", "run --help"),
        ("run help", "run --help"),
        ("probe wakeup help", "probe wakeup --help"),
        ("run -i 1000 -D 10 -a 1 -p 80", "run --interval=1000us --duration=10s --cpu=1 --priority=80"),
        ("run -D 2m", "run --duration=2min"),
        ("probe wakeup -c 1 -d 10s", "probe wakeup --cpu=1 --duration=10s"),
        ("watch -p 1234", "watch --pid=1234"),
        ("show latest --page", "show latest --page="),
        ("show --page latest", "show --page= latest"),
        ("show latest --page a.html", "show latest --page=a.html"),
        ("watch -- ./loop -p 80 help", "watch -- ./loop -p 80 help"),
    ],
)
def test_habits_are_read(typed: str, read: str) -> None:
    assert " ".join(rewritten(typed.split())) == read


@pytest.mark.parametrize(
    ("command", "bound"),
    [("run", "latency<=500us"), ("watch", "response<=1ms"), ("probe response", "response<=1ms")],
)
def test_a_deadline_is_a_requirement(command: str, bound: str) -> None:
    assert rewritten([*command.split(), "--deadline", "1ms"])[-1] == f"--require=period=1ms {bound}"
    assert rewritten([*command.split(), "--deadline=1ms"])[-1] == f"--require=period=1ms {bound}"


def test_a_record_keeps_the_command_with_long_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next command repeats it, and gives some of the options anew."""
    monkeypatch.setattr("sys.argv", ["/usr/bin/rtgauge", "probe", "wakeup", "-D", "10", "-i", "1000"])
    assert given_command() == ["rtgauge", "probe", "wakeup", "--duration=10s", "--interval=1000us"]
    monkeypatch.setattr("sys.argv", ["rtgauge", "watch", "--deadline", "1ms", "--", "loop", "-D", "9"])
    assert given_command()[2:] == ["--require=period=1ms response<=1ms", "--", "loop", "-D", "9"]


def test_a_wrong_deadline_is_refused() -> None:
    with pytest.raises(InputError, match="--deadline: 'soon' is not a duration"):
        rewritten(["run", "--deadline", "soon"])
