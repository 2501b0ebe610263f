# SPDX-License-Identifier: MIT
"""The engine's `attach`: it follows a guard's files, and leaves without harm whenever it likes
(docs/formats/agent.md).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rtgauge.target.ssh_guarded import LAUNCH_SESSION
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.engine
ATTACHED = '{"type":"attach","event":"attached"}\n'


class Program:
    """A program under a detached guard, with its files in a folder."""

    def __init__(self, engine: Path, folder: Path, *argv: str, lease_s: float = 600) -> None:
        self.engine, self.folder = engine, folder
        folder.mkdir()
        os.mkfifo(folder / "input", 0o600)
        for name in ("output", "status"):
            (folder / name).touch()
        words = [
            engine,
            "guard",
            "--run",
            "t",
            "--detach",
            "--lease-ns",
            str(round(lease_s * 1e9)),
            "--grace-ns",
            "500000000",
            "--status-fd",
            "3",
            "--",
            *argv,
        ]
        command = ["sh", "-c", 'exec "$@" <>input >>output 3>>status', "sh", *map(str, words)]
        self.guard = subprocess.Popen(command, cwd=folder)

    def attach(self, *options: object, **more: Any) -> subprocess.Popen[str]:
        command = [self.engine, "attach", "--folder", self.folder, "--pid", self.guard.pid, *options]
        pipes: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        } | more
        return subprocess.Popen([str(word) for word in command], text=True, **pipes)

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "status").read_text().splitlines()]


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    started: list[Program] = []
    yield started
    for program in started:
        program.guard.terminate()
        program.guard.wait(PATIENCE_S)


@pytest.fixture
def start(engine: Path, tmp_path: Path, programs: list[Program]) -> Any:
    def begin(script: str, **options: Any) -> Program:
        programs.append(Program(engine, tmp_path / f"p{len(programs)}", "sh", "-c", script, **options))
        return programs[-1]

    return begin


def ended(status: int) -> str:
    return f'{{"type":"attach","event":"ended","status":{status}}}\n'


def send_word(attach: subprocess.Popen[str], word: str) -> None:
    assert attach.stdin is not None
    attach.stdin.write(word + "\n")
    attach.stdin.flush()


def next_line(attach: subprocess.Popen[str]) -> str:
    assert attach.stdout is not None
    return attach.stdout.readline()


def whole(attach: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Its standard input stays open meanwhile."""
    assert attach.stdout is not None
    assert attach.stderr is not None
    out, err = attach.stdout.read(), attach.stderr.read()
    status = attach.wait(PATIENCE_S)
    attach.communicate()
    return status, out, err


def test_output_and_exit_status_come_through(start: Any) -> None:
    assert whole(start("printf 'a\\nb'; exit 7").attach()) == (7, ATTACHED + "a\nb", ended(7))


def test_words_go_to_the_program(start: Any) -> None:
    attach = start("read one; read two; echo $two $one; exit 3").attach()
    send_word(attach, "first")
    send_word(attach, "renew")
    send_word(attach, "second")
    assert whole(attach) == (3, ATTACHED + "second first\n", ended(3))


def test_much_output_is_whole(start: Any) -> None:
    status, out, _ = whole(start("seq 300000").attach())
    assert status == 0
    assert out == ATTACHED + "".join(f"{n}\n" for n in range(1, 300001))


def test_a_program_that_has_ended_can_still_be_followed(start: Any) -> None:
    program = start("echo all; exit 4")
    program.guard.wait(PATIENCE_S)
    assert whole(program.attach()) == (4, ATTACHED + "all\n", ended(4))
    assert whole(program.attach("--from", 2)) == (4, ATTACHED + "l\n", ended(4))


@pytest.mark.parametrize("how", ["kill", "close"])
def test_the_program_outlives_the_one_that_follows_it(start: Any, how: str) -> None:
    program = start("echo one; read word; echo $word; exit 5")
    first = program.attach()
    assert next_line(first) + next_line(first) == ATTACHED + "one\n"
    first.kill() if how == "kill" else first.stdin.close()
    first.wait(PATIENCE_S)
    first.stdout.close()
    first.stderr.close()
    assert program.guard.poll() is None
    second = program.attach("--from", 4)
    send_word(second, "two")
    assert whole(second) == (5, ATTACHED + "two\n", ended(5))


def test_two_cannot_follow_at_once(start: Any) -> None:
    program = start("read word")
    first = program.attach()
    assert next_line(first) == ATTACHED
    status, out, err = whole(program.attach())
    assert (status, err) == (3, "")
    assert json.loads(out)["code"] == "attached"
    send_word(first, "x")
    assert whole(first)[0] == 0


def test_one_that_hears_nothing_lets_go(start: Any) -> None:
    program = start("read word; exit 6")
    begun = time.monotonic()
    status, out, err = whole(program.attach("--idle-ns", 300_000_000))
    assert (status, out, err) == (3, ATTACHED, "")
    assert time.monotonic() - begun >= 0.3
    assert program.guard.poll() is None
    second = program.attach()
    send_word(second, "x")
    assert whole(second)[0] == 6


def test_one_whose_reader_has_gone_lets_go(start: Any) -> None:
    program = start("read word; seq 100000; read word; exit 6")
    first = program.attach()
    assert next_line(first) == ATTACHED
    send_word(first, "x")
    assert next_line(first) == "1\n"
    first.stdout.close()
    assert first.wait(PATIENCE_S) == 3
    first.stderr.close()
    first.stdin.close()
    second = program.attach()
    send_word(second, "y")
    status, out, _ = whole(second)
    assert (status, out.count("\n")) == (6, 100001)


def test_end_ends_the_program(start: Any) -> None:
    program = start("trap '' HUP; echo here; exec sleep 1000")
    attach = program.attach()
    assert next_line(attach) + next_line(attach) == ATTACHED + "here\n"
    send_word(attach, "end")
    assert whole(attach) == (128 + signal.SIGTERM, "", ended(128 + signal.SIGTERM))
    assert program.events()[-1]["reason"] == "signal"


def test_an_expired_lease_is_detected(start: Any) -> None:
    program = start("exec sleep 1000", lease_s=0.3)
    assert whole(program.attach()) == (128 + signal.SIGTERM, ATTACHED, ended(128 + signal.SIGTERM))
    assert program.events()[-1]["reason"] == "lease"


def test_a_killed_guard_gives_status_137(start: Any) -> None:
    program = start("echo here; exec sleep 1000")
    attach = program.attach()
    assert next_line(attach) + next_line(attach) == ATTACHED + "here\n"
    program.guard.kill()
    program.guard.wait(PATIENCE_S)
    assert whole(attach) == (137, "", ended(137))


def test_lines_that_are_too_long_are_dropped(start: Any) -> None:
    attach = start("read word; echo $word").attach()
    send_word(attach, "x" * 100_000)
    send_word(attach, "short")
    assert whole(attach)[1] == ATTACHED + "short\n"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--folder", "."],
        ["--pid", "1"],
        ["--folder", ".", "--pid", "0"],
        ["--folder", ".", "--pid", "1", "more"],
        ["--from", "-1"],
    ],
)
def test_wrong_words(engine: Path, tmp_path: Path, words: list[str]) -> None:
    completed = subprocess.run(
        [engine, "attach", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert (completed.returncode, completed.stderr) == (2, "")
    assert json.loads(completed.stdout)["code"] == "usage"


@pytest.mark.parametrize("what", ["no folder", "no FIFO", "no output", "a link"])
def test_a_folder_that_is_no_guards_is_refused(engine: Path, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "p"
    if what != "no folder":
        folder.mkdir()
        (folder / "status").touch()
    if what in {"no FIFO", "a link"}:
        (folder / "output").touch()
        (folder / "input").touch()
    if what == "a link":
        (folder / "input").unlink()
        os.mkfifo(tmp_path / "other")
        (folder / "input").symlink_to(tmp_path / "other")
    words = [engine, "attach", "--folder", folder, "--pid", str(os.getpid())]
    completed = subprocess.run(
        words, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, check=False
    )
    assert (completed.returncode, completed.stderr) == (3, "")
    assert json.loads(completed.stdout)["type"] == "error"


def test_a_session_that_ends_before_it_is_followed_is_heard(engine: Path, tmp_path: Path) -> None:
    slow = tmp_path / "engine"
    slow.write_text(f'#!/bin/sh\nwhile [ ! -e {tmp_path}/over ]; do sleep 0.05; done\nexec {engine} "$@"\n')
    slow.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    command = ["sh", "-c", f"echo refused; (sleep 0.2; : >{tmp_path}/over) & exit 3"]
    words = ["sh", "-c", LAUNCH_SESSION, "sh", slow, home / "session", "apart", home, *command]
    host, lease = os.pipe()
    try:
        completed = subprocess.run(
            [str(word) for word in words],
            stdin=host,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    finally:
        os.close(host)
        os.close(lease)
    assert "refused" in completed.stdout.splitlines()
    deadline = time.monotonic() + PATIENCE_S
    while home.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
