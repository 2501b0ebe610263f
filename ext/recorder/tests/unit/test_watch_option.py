# SPDX-License-Identifier: MIT
"""`rtgauge watch --for` records as `rtgauge recorder run` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.cli import invoke

from rtgauge.errors import EXIT_INPUT, EXIT_OK
from rtgauge_ext.recorder import recorder_command
from rtgauge_ext.recorder.recorder_command import Keep, ProgramOptions, Triggers

if TYPE_CHECKING:
    from collections.abc import Sequence

REQUIRE = "period=1ms latency<=200us"


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What is recorded, instead of recording it."""
    calls: list[tuple[object, ...]] = []

    def record(*options: object) -> None:
        calls.append(options)

    monkeypatch.setattr(recorder_command, "record", record)
    return calls


def test_watch_records_with_the_options_of_the_recorder(recorded: list[tuple[object, ...]]) -> None:
    words = ("--threads", "loop", "--cycle", "read", "--require", REQUIRE, "--keep", "20MiB")
    completed = invoke("watch", "--program", "control", "--for", "30d", "--budget-cpu", "1%", *words)
    assert completed.returncode == EXIT_OK, completed.stderr
    program = ProgramOptions(program="control", threads="loop", cycle="read", require=REQUIRE)
    assert recorded == [(program, Keep(for_="30d", keep="20MiB", budget_cpu="1%"), Triggers())]


def test_what_is_not_given_is_the_recorders_own(recorded: list[tuple[object, ...]]) -> None:
    assert invoke("watch", "--pid", "812", "--for", "1h").returncode == EXIT_OK
    assert recorded == [(ProgramOptions(pid=812), Keep(for_="1h"), Triggers())]


def test_watch_installs_the_recorder_as_a_service(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, ...]] = []

    def install(*words: object) -> None:
        calls.append(words)

    monkeypatch.setattr(recorder_command, "install", install)
    words = ("--program", "control", "--require", REQUIRE, "--for", "30d", "--install", "flight")
    assert invoke("watch", *words, "--target", "ssh://board").returncode == EXIT_OK
    given = ["--program=control", f"--require={REQUIRE}", "--for=30d"]
    assert calls == [("flight", given, "ssh://board")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--keep", "20MiB"), "need --for"),
        (("--for", "30d", "--save"), "does not take --save"),
        (("--for", "30d", "--duration", "1min"), "does not take --duration"),
        (("--for", "30d", "--no-explain"), "does not take --no-explain"),
        (("--for", "30d", "--target", "ssh://board"), "needs --install"),
        (("--install", "flight"), "need --for"),
        (("--for", "30d", "--", "true"), "does not take a command"),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: Sequence[str], message: str, recorded: list[tuple[object, ...]]
) -> None:
    completed = invoke("watch", "--pid", "812", *words)
    assert completed.returncode == EXIT_INPUT and message in completed.stderr
    assert recorded == []
