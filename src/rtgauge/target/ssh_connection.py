# SPDX-License-Identifier: MIT
"""One connection to a target, by the OpenSSH client with the user's own configuration."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import shlex
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from rtgauge.errors import InputError, MeasureError
from rtgauge.target.ssh_errors import ConnectionBroken, explain_ssh

if TYPE_CHECKING:
    from collections.abc import Sequence
    from io import BufferedReader

    from rtgauge.target.address import SshAddress

CONNECT_S = 15
ALIVE_S = 5
PERSIST_S = 60
"""The shared connection ends by itself so long after its last use, also where this process was killed."""
PATIENCE_S = 60.0
LONGEST_CONTROL_PATH = 64
"""A Unix socket's path has 108 bytes, and ssh adds 17 for a moment."""
CONTROL_PREFIX = "rtg-ssh-"

# What a login shell's start-up files print comes before the mark on standard output, what is over is told by the mark
# on standard error. LC_ALL: messages are read.
WRAPPER = 'echo "$0"; export LC_ALL=C; ( {body}\n); echo "$0 $?" >&2'


MOST_ANSWER = 64 << 20
"""Bytes of the answer to one command: /proc of a large machine has less than a tenth."""
PIECE = 1 << 20
MOST_BEFORE = 1 << 20
"""Bytes that a login shell prints before a command's own output begins, and of standard error that are looked at (its end)."""
# Said where two commands begin at once after a break: one shares the other's connection, or has its own.
NOISE = re.compile(r"^ControlSocket .* already exists, disabling multiplexing\r?\n", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """A command on the target that has ended: its exit status and what it printed."""

    status: int
    stdout: bytes
    stderr: str


def remote_command(body: str, words: Sequence[str], mark: str) -> str:
    """One line for the target's login shell: the script `body`, with `words` as its $1, $2, ...

    `body` is a constant of ours. Everything else is a quoted word, and never looked at by a shell.
    """
    if any("\0" in word for word in words):
        raise InputError("a name holds a NUL byte, which no command line can")
    return " ".join(shlex.quote(word) for word in ("sh", "-c", WRAPPER.format(body=body), mark, *words))


class Channel:
    """A command that runs on the target."""

    def __init__(self, connection: SshConnection, body: str, words: Sequence[str], stdin: int | IO[bytes], *, first: bool = False) -> None:
        self._connection = connection
        self.mark = f"rtgauge-{secrets.token_hex(8)}"
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `finish`
        command = [*connection.command(ask=first), remote_command(body, words, self.mark)]
        try:
            # Only the first may ask the user for a password; the others are out of reach of a Ctrl-C in the terminal.
            self.process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=not first)
        except BaseException as error:
            self._errors.close()
            if isinstance(error, FileNotFoundError):
                raise MeasureError("the program ssh is missing on this machine: install it (apt-get install openssh-client)") from None
            if isinstance(error, OSError):
                raise MeasureError(f"ssh cannot be started: {error.strerror}") from None
            raise

    def skip_to_mark(self) -> bool:
        """Read standard output up to where the command's own begins; False: it ended before."""
        assert self.process.stdout is not None  # noqa: S101 - Popen was asked for a pipe
        mark, skipped = self.mark.encode() + b"\n", 0
        while (line := self.process.stdout.readline(MOST_BEFORE)) and skipped < MOST_BEFORE:
            if line.endswith(mark):
                return True
            skipped += len(line)
        return False

    def read_all(self, timeout_s: float | None = None) -> bytes:
        """The rest of standard output. Raises MeasureError where it is more than any answer, TimeoutError where it does not end in time."""
        stdout = cast("BufferedReader", self.process.stdout)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        ready = select.poll()
        ready.register(stdout, select.POLLIN)
        output = bytearray()
        while deadline is None or ready.poll(max(0, deadline - time.monotonic()) * 1_000):
            piece = stdout.read1(PIECE)
            if not piece:
                return bytes(output)
            output += piece
            if len(output) > MOST_ANSWER:
                raise MeasureError(f"the target sends more than {MOST_ANSWER >> 20} MiB in answer to one command")
        raise TimeoutError

    def finish(self) -> tuple[int | None, str]:
        """After its end: exit status (None: the connection ended before the command did) and what it wrote on standard error."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self.process.wait()
        if self._errors.closed:
            return None, ""
        self._errors.seek(0)
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - MOST_BEFORE))
        stderr = self._errors.read(MOST_BEFORE).decode(errors="replace")
        self._errors.close()
        stderr = NOISE.sub("", stderr)
        match = re.search(rf"{self.mark} ([0-9]{{1,3}})\n", stderr)
        return (int(match[1]), stderr.replace(match[0], "")) if match is not None else (None, stderr)

    def kill(self) -> None:
        """Let go of it; what runs on the target goes on."""
        self.process.kill()
        self.finish()


def _remove_stale(parent: Path) -> None:
    """Remove this user's control folders that were left by killed processes, after which they are named, once their connection has ended too."""
    for folder in parent.glob(f"{CONTROL_PREFIX}*-*"):
        pid = folder.name.removeprefix(CONTROL_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            own = not folder.is_symlink() and folder.stat().st_uid == os.getuid()
            if own and pid.isdecimal() and not Path("/proc", pid).exists() and not _answers(folder / "c"):
                shutil.rmtree(folder, ignore_errors=True)


def _answers(path: Path) -> bool:
    """Whether a connection listens at this socket: a master outlives its rtgauge for a while (ControlPersist)."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def _control_folder() -> Path:
    """A private folder whose path is short enough for a socket; those that killed processes left beside it are removed."""
    for parent in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108 - mkdtemp makes a private folder in it
        if parent is not None and "%" not in parent and len(parent) < LONGEST_CONTROL_PATH and os.access(parent, os.W_OK):
            _remove_stale(Path(parent))
            return Path(tempfile.mkdtemp(prefix=f"{CONTROL_PREFIX}{os.getpid()}-", dir=parent))
    raise MeasureError("there is no folder with a short name for the ssh connection's socket: set TMPDIR to one, such as /tmp")


def _feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    """Write all standard input and close it, beside the reading of the output."""
    assert process.stdin is not None  # noqa: S101 - Popen was asked for a pipe
    with contextlib.suppress(OSError, ValueError):
        process.stdin.write(data)
    with contextlib.suppress(OSError, ValueError):
        process.stdin.close()


class SshConnection:
    """Commands on a target. One connection is shared by all; where it breaks, the next command makes a new one."""

    def __init__(self, address: SshAddress) -> None:
        """Nothing is connected until the first command."""
        self.address = address
        self._folder = _control_folder()
        self._asked = False

    def command(self, *, ask: bool) -> list[str]:
        """The ssh client's command line up to the remote command; `ask`: it may ask for a password or a new host key."""
        options = {
            "ControlMaster": "auto",
            "ControlPath": f"{self._folder}/c",
            "ControlPersist": PERSIST_S,
            "ConnectTimeout": CONNECT_S,
            "ServerAliveInterval": ALIVE_S,
            "ServerAliveCountMax": 3,
            "RemoteCommand": "none",
            "RequestTTY": "no",
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "ClearAllForwardings": "yes",
            "LogLevel": "ERROR",
            **({} if ask else {"BatchMode": "yes"}),
            **dict(self.address.options),
        }
        own = ["-F", "none"] if self.address.options else []
        command = ["ssh", *own, *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
        command += ["-l", self.address.user] if self.address.user is not None else []
        command += ["-p", str(self.address.port)] if self.address.port is not None else []
        return [*command, "--", self.address.host]

    def channel(self, body: str, words: Sequence[str] = (), stdin: int | IO[bytes] = subprocess.PIPE) -> Channel:
        """Start a command. Raises MeasureError."""
        first = not self._asked and os.isatty(2)
        self._asked = True
        return Channel(self, body, words, stdin, first=first)

    def run(self, body: str, words: Sequence[str] = (), send: bytes | IO[bytes] = b"", timeout_s: float = PATIENCE_S) -> Answer:
        """Run a command to its end. Raises ConnectionBroken where it could not be."""
        given = send if not isinstance(send, bytes) else subprocess.PIPE
        channel = self.channel(body, words, given)
        try:
            if isinstance(send, bytes):
                threading.Thread(target=_feed, args=(channel.process, send), daemon=True).start()
            output = channel.read_all(timeout_s)
        except TimeoutError:
            channel.kill()
            raise ConnectionBroken.to(self.address.name, f"{self.address.name} does not answer (waited {timeout_s:g} s)") from None
        except BaseException:
            channel.kill()
            raise
        status, stderr = channel.finish()
        if status is None:
            raise explain_ssh(stderr, self.address)
        _, marked, own = output.partition(channel.mark.encode() + b"\n")
        return Answer(status, own if marked else b"", stderr)

    def close(self) -> None:
        """End the shared connection."""
        if (self._folder / "c").exists():
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run([*self.command(ask=False)[:-2], "-O", "exit", "--", self.address.host], capture_output=True, timeout=CONNECT_S, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)
