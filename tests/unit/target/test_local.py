# SPDX-License-Identifier: MIT
"""This machine as a target: an engine that hangs, dies or talks nonsense is one error, not a traceback."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from rtgauge.errors import HungError, MeasureError, SilentError
from rtgauge.target import guard, local
from rtgauge.target.local import LocalTarget, read_local
from tests.support.messages import missing
from tests.support.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOCKED = """[ "$1" = guard ] && { echo '{"type":"guard"}'; exec cat; }"""
"""A guard that holds the machine until its input ends."""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """In place of the engine, a shell script."""
    path = tmp_path / "engine"
    monkeypatch.setattr(local, "engine_path", lambda: path)

    def write(script: str) -> Path:
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return write


def test_a_verb_that_hangs_is_killed_and_named(
    engine: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine(f"{LOCKED}\nexec sleep 100")
    with LocalTarget("test", "a test") as target:
        monkeypatch.setattr(local, "VERB_PATIENCE_S", 0.01)
        with pytest.raises(HungError, match=r"command set .* 0\.01 s"):
            target.agent("set", "--", "/sys/x", "1")
        with pytest.raises(MeasureError, match=r"command read .* 0\.01 s"):
            target.read(["/proc/version"])


def test_a_guard_that_never_answers_is_named(
    engine: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The run says soon that it waits, and ends in a time that fits; a hung guard does not outlive it."""
    engine("exec sleep 1000")
    monkeypatch.setattr(guard, "NOTICE_S", 0.01)
    monkeypatch.setattr(guard, "ANSWER_S", 0.1)
    with pytest.raises(SilentError, match=r"guard .* 0\.1 s"):
        LocalTarget("test", "a test", wait_s=1000)
    (line,) = capfd.readouterr().err.splitlines()
    assert not missing(line, "waiting", "this machine", "0.01 s", "gives up after 0.1 s")


def test_lines_that_a_guard_prints_at_once_are_all_read(
    engine: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine("""printf '{"type":"restore"}\\n{"type":"restore"}\\n{"type":"guard"}\\n'; exec cat""")
    monkeypatch.setattr(guard, "ANSWER_S", 5.0)
    with LocalTarget("test", "a test") as target:
        assert len(target.restored_before) == 2


def test_a_guard_that_waits_may_be_silent(
    engine: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine(
        f"""echo '{{"type":"guard","event":"waiting","run":null}}'
        until [ -e {tmp_path}/go ]; do sleep 0.05; done
        echo '{{"type":"guard"}}'; exec cat"""
    )
    monkeypatch.setattr(guard, "ANSWER_S", 1.0)
    LocalTarget("test", "a test", wait_s=1000, at_held=lambda *_: (tmp_path / "go").touch()).close()


def test_a_slow_guard_may_finish_restoring_settings(
    engine: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine(
        f'echo \'{{"type":"guard"}}\'; cat; until [ -e {tmp_path}/go ]; do sleep 0.05; done; : '
        f">{tmp_path}/restored"
    )
    monkeypatch.setattr(local, "END_PATIENCE_S", 0.01)
    target = LocalTarget("test", "a test")
    target.close()
    (tmp_path / "go").touch()
    target._session.communicate(timeout=PATIENCE_S)
    assert (tmp_path / "restored").exists()


def test_a_run_without_guard_does_not_wait_for_silence(
    engine: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "STOP_S", 0.0)
    engine(f'case "$*" in *--lock*) {LOCKED} ;; esac\necho first; read word; echo "$word"; exec sleep 100')
    with LocalTarget("test", "a test") as target:
        lines = target.engine("wakeup").lines()
        assert next(lines) == b"first\n"
        target._session.kill()
        assert next(lines) == b"stop\n"
        with pytest.raises(MeasureError, match=r"guard .* rtgauge restore"):
            next(lines)
        target._running[0]._process.kill()


def test_while_its_reader_is_busy_a_program_is_not_silent(
    engine: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine(f'case "$*" in *--lock*) {LOCKED} ;; esac\necho first; read word; sleep 0.2; echo second')
    monkeypatch.setattr(local, "LOOK_EVERY_S", 0.001)
    clock = time.monotonic
    with LocalTarget("test", "a test") as target:
        program = target.engine("wakeup")
        lines = program.lines(silence_s=60)
        assert next(lines) == b"first\n"
        monkeypatch.setattr(time, "monotonic", lambda: clock() + 3600)
        program.send("go")
        assert next(lines) == b"second\n"
        monkeypatch.undo()


def test_a_program_that_says_nothing_more_is_named(engine: Callable[[str], Path]) -> None:
    engine(f'case "$*" in *--lock*) {LOCKED} ;; esac\necho first; exec sleep 100')
    with LocalTarget("test", "a test") as target:
        lines = target.engine("wakeup").lines(silence_s=0.01)
        assert next(lines) == b"first\n"
        with pytest.raises(SilentError, match=r"sent nothing for 0 s"):
            next(lines)
        target._running[0]._process.kill()


@pytest.mark.parametrize("script", ["exit 3", "echo '{'", "echo '[]'", "echo '{}'"])
def test_an_answer_to_read_that_is_none(engine: Callable[[str], Path], script: str) -> None:
    engine(script)
    with pytest.raises(MeasureError, match="the engine's command read failed"):
        read_local(["/proc/version"])


def test_an_engine_that_cannot_be_started(engine: Callable[[str], Path]) -> None:
    engine("").chmod(0o644)
    with pytest.raises(MeasureError, match=r"engine .*Permission denied"):
        read_local(["/proc/version"])
