# SPDX-License-Identifier: MIT
"""What a recorder does at a trigger: runs a command, sends the program a signal, or stops recording."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rtgauge.errors import InputError
from rtgauge_ext.recorder.program import Program
from rtgauge_ext.recorder.triggers import Trigger

FREEZE, SIGNAL = "freeze", "signal:"
MOST_S = 60.0
"""How long a command may run."""


def check_roots_file(path: Path) -> Path:
    """Return the path of a file that only root can change: the file, and every folder above it.

    Raises InputError.
    """
    if not path.is_absolute():
        raise InputError(f"{path}: give the whole path, such as /usr/local/sbin/{path.name}")
    real = path.resolve()
    for place in (real, *real.parents):
        try:
            about = place.stat()
        except OSError as error:
            raise InputError(f"{path} cannot be used: {error.strerror}") from None
        writable = stat.S_IWGRP | stat.S_IWOTH
        shared = about.st_mode & writable and not (place != real and about.st_mode & stat.S_ISVTX)
        if about.st_uid != 0 or shared:
            raise InputError(
                f"{path} cannot be used, because users other than root can change {place}; make it writable "
                "only by root (chown root, chmod go-w), or choose a file in a folder of root"
            )
    if not stat.S_ISREG(real.stat().st_mode) or not os.access(real, os.X_OK):
        raise InputError(f"{path} is not a program; make it one with chmod +x")
    return real


def signal_number(name: str) -> int:
    """Return the number of a signal, such as USR1 or SIGUSR1. Raises InputError."""
    try:
        return signal.Signals[name if name.startswith("SIG") else f"SIG{name}"].value
    except KeyError:
        raise InputError(f"there is no signal {name}; give one such as {SIGNAL}USR1") from None


@dataclass
class Actions:
    """The actions of one recorder. At most one trigger acts in each `every_s`; the others are counted."""

    wanted: tuple[str, ...]
    every_s: float
    count: Callable[[str], None]
    """Counts what happened, by name."""
    frozen: bool = False
    _acted_s: float | None = None
    _running: list[tuple[float, subprocess.Popen[bytes]]] = field(
        default_factory=list[tuple[float, subprocess.Popen[bytes]]]
    )

    def __post_init__(self) -> None:
        """Raise InputError if an action cannot be done."""
        for action in self.wanted:
            if action.startswith(SIGNAL):
                signal_number(action.removeprefix(SIGNAL))
            elif action != FREEZE:
                check_roots_file(Path(action))

    def act(self, trigger: Trigger, program: Program | None, now_s: float) -> None:
        """Do what the trigger asks for, unless another one acted a moment ago."""
        if not self.wanted:
            return
        if self._acted_s is not None and now_s - self._acted_s < self.every_s:
            self.count("triggers_without_action")
            return
        self._acted_s = now_s
        for action in self.wanted:
            if action == FREEZE:
                self.frozen = True
            elif action.startswith(SIGNAL):
                self._send(signal_number(action.removeprefix(SIGNAL)), program)
            else:
                self._start(Path(action), trigger, now_s)

    def look(self, now_s: float) -> None:
        """Reap the commands that have ended, and kill the ones that run too long."""
        for since_s, process in [*self._running]:
            if process.poll() is not None:
                self.count("commands_failed" if process.returncode else "commands_done")
                self._running.remove((since_s, process))
            elif now_s - since_s > MOST_S:
                process.kill()

    def close(self) -> None:
        """Wait for the commands that still run."""
        for _, process in self._running:
            try:
                process.wait(MOST_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self.count("commands_failed" if process.returncode else "commands_done")
        self._running.clear()

    def _send(self, number: int, program: Program | None) -> None:
        """Send the program a signal. A process that has taken over its ID does not get it."""
        try:
            if program is None:
                raise ProcessLookupError
            descriptor = os.pidfd_open(program.pid)
            try:
                if not program.lives:
                    raise ProcessLookupError
                signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)
        except OSError:
            self.count("signals_failed")
        else:
            self.count("signals_sent")

    def _start(self, path: Path, trigger: Trigger, now_s: float) -> None:
        """Start the command with the trigger's name and line as its arguments."""
        try:
            process = subprocess.Popen(
                [check_roots_file(path), trigger.name, trigger.detail],
                stdin=subprocess.DEVNULL,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                cwd="/",
                start_new_session=True,
            )
        except (OSError, InputError):
            self.count("commands_failed")
        else:
            self._running.append((now_s, process))
