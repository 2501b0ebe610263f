# SPDX-License-Identifier: MIT
"""Calls the command `rtgauge`: `rtgauge()` and `start()` as a user does, in a process of its own; `invoke()`
in this one, which is quicker.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any
from unittest import mock

from rtgauge.cli.main import main
from tests.support.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMAND = [sys.executable, "-c", "from rtgauge.cli.main import main; main()"]
"""Works where the package is installed, and in a checkout."""
SHORT = ("--set", "warm-up=100ms", "--set", "interval=1ms")
HELD = "this machine is held by"
LOCK = Path("/run/rtgauge/lock")

CommandResult = subprocess.CompletedProcess[str]


def environment(**changes: str | None) -> dict[str, str]:
    """This process's environment for a plain terminal; None takes a variable out."""
    fixed: dict[str, str | None] = {
        "TERM": "dumb",
        "COLUMNS": None,
        "NO_COLOR": None,
        "FORCE_COLOR": None,
        "PYTHONWARNINGS": "error::ResourceWarning",
    }
    merged = {**os.environ, **fixed, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def rtgauge(
    *words: object,
    env: dict[str, str | None] | None = None,
    wait_for_lock: bool = True,
    before: Sequence[str] = (),
    **options: Any,
) -> CommandResult:
    """Run to the end. `before` is put before the command (setpriv, prlimit).

    Where something else measures this machine at the moment, it is waited for: `wait_for_lock` False tests
    just that.
    """
    options = {
        "timeout": PATIENCE_S,
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    } | options

    def call() -> CommandResult:
        return subprocess.run(
            [*before, *COMMAND, *map(str, words)],
            env=environment(**(env or {})),
            text=True,
            check=False,
            **options,
        )

    return _with_lock(call) if wait_for_lock else call()


def invoke(
    *words: object,
    env: dict[str, str | None] | None = None,
    wait_for_lock: bool = True,
    cwd: Path | str = ".",
) -> CommandResult:
    """As `rtgauge`, in this process: half a second less, where nothing of a process (signals, descriptors,
    rights, what is imported) is tested.

    What programs that it starts say on standard error is not in it.
    """

    def call() -> CommandResult:
        with (
            TemporaryFile("w+", encoding="utf-8") as out,
            TemporaryFile("w+", encoding="utf-8") as errors,
            Path(os.devnull).open() as nothing,
            mock.patch.multiple(
                sys, argv=["rtgauge", *map(str, words)], stdin=nothing, stdout=out, stderr=errors
            ),
            mock.patch.dict(os.environ, environment(**(env or {})), clear=True),
            chdir(cwd),
        ):
            try:
                main()
            except SystemExit as ended:
                status = ended.code if isinstance(ended.code, int) else 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
            texts: list[str] = []
            for file in (out, errors):
                file.seek(0)
                texts.append(file.read())
        return subprocess.CompletedProcess(["rtgauge", *map(str, words)], status, *texts)

    return _with_lock(call) if wait_for_lock else call()


def _with_lock(call: Callable[[], CommandResult]) -> CommandResult:
    """Call until nothing else measures this machine."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        completed = call()
        if completed.returncode != 3 or HELD not in (completed.stderr or "") or time.monotonic() > deadline:
            return completed
        wait_until_free()


def nothing_missed(*words: object) -> tuple[CommandResult, dict[str, Any]]:
    """Run a measurement with --json and a long interval; once more where the machine stood still for so long
    that activations were missed, which break
    every requirement. Gives the document too."""
    for _ in range(10):
        completed = rtgauge(*words)
        actual: dict[str, Any] = json.loads(completed.stdout)
        if not any(step["total"]["missed"] for step in actual["steps"]):
            return completed, actual
    raise AssertionError(f"this machine misses activations each time: {completed.stdout}")


def start(
    *words: object, env: dict[str, str | None] | None = None, log: Path, **options: Any
) -> subprocess.Popen[str]:
    """Start and do not wait; standard error goes to the file `log`. Waits until the machine is ours."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with log.open("w") as errors:
            process = subprocess.Popen(
                [*COMMAND, *map(str, words)],
                env=environment(**(env or {})),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                **options,
            )
        wait_until(
            lambda process=process: process.poll() is not None or _has_begun(log.read_text()),
            "the run to begin",
        )
        if process.poll() != 3 or HELD not in log.read_text() or time.monotonic() > deadline:
            return process
        process.communicate()
        wait_until_free()


def _has_begun(reported: str) -> bool:
    """Not the refusal, which names the run that holds the machine: its folder may be that of a test with
    "step" in its name.
    """
    return "step" in reported and HELD not in reported


def wait_until_free() -> None:
    """Wait until nobody holds this machine's lock."""
    wait_until(lambda: not is_held(), "this machine to be free")


def is_held() -> bool:
    """Whether somebody holds this machine's lock, by the kernel's list: to try it would be in others' way."""
    if not LOCK.exists():
        return False
    about = LOCK.stat()
    place = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
    return any(place in line.split() for line in Path("/proc/locks").read_text().splitlines())


def end(process: subprocess.Popen[str]) -> None:
    """Make sure that a started command is gone."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.communicate()


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = PATIENCE_S) -> None:
    """Look every 50 ms."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout_s} s in vain for {what}"
        time.sleep(0.05)


def error_line(finished: CommandResult, status: int) -> str:
    """The one line that a failed command says; asserts that it is one, with this exit status and without a
    traceback.
    """
    assert finished.returncode == status, f"status {finished.returncode}, not {status}: {finished.stderr}"
    return only_error(finished.stderr)


def only_error(text: str) -> str:
    """The line that begins with `rtgauge: `."""
    assert "Traceback" not in text, text
    lines = [line for line in text.splitlines() if line.startswith("rtgauge: ")]
    assert len(lines) == 1, text
    assert text.rstrip().splitlines()[-1] == lines[0], text
    return lines[0]


def good(finished: CommandResult, status: int = 0) -> CommandResult:
    """Asserts the status and that nothing went wrong on the way."""
    assert finished.returncode == status, (
        f"status {finished.returncode}, not {status}: {finished.stderr}\n{finished.stdout}"
    )
    assert "Traceback" not in finished.stderr, finished.stderr
    assert "Warning" not in finished.stderr, finished.stderr
    return finished
