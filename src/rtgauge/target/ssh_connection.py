# SPDX-License-Identifier: MIT
"""Makes one connection to a target, with the OpenSSH client and the user's configuration."""

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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from rtgauge.errors import InputError, MeasureError
from rtgauge.program_run import run_program
from rtgauge.target.ssh_address import SshAddress
from rtgauge.target.ssh_errors import ConnectionBroken, explain_ssh

CONNECT_S = 15
ALIVE_S = 5
PERSIST_S = 60
"""How long (s) after its last use the shared connection ends by itself, even if this process was killed."""
PATIENCE_S = 60.0
LONGEST_CONTROL_PATH = 64
"""A Unix socket's path has at most 108 bytes, and ssh temporarily adds 17."""
CONTROL_PREFIX = "rtg-ssh-"

# On standard output, the mark follows the output of the login shell's start-up files. On standard error, the
# mark reports the end. LC_ALL is set because rtgauge reads messages.
WRAPPER = 'echo "$0"; export LC_ALL=C; ( {body}\n); echo "$0 $?" >&2'
LONGEST_LINE = 8_000
"""The longest line (bytes) for a login shell. Dropbear ends the connection if it gets one of over 9,000."""
TAKE_WORDS = 'eval "set -- $(dd bs=1 count="$1" 2>/dev/null)"'
"""Reads a longer command's words from the first $1 bytes of standard input, and not a byte more."""

MOST_ANSWER = 64 << 20
"""The most bytes in one command's answer. A large machine's /proc has less than a tenth of this."""
PIPE_PIECE = 1 << 16
"""How many bytes to read from a pipe at once: as many as the pipe can hold."""
END_S = 10.0
"""How long (s) ssh may take to end after its command has ended."""
MOST_BEFORE = 1 << 20
"""The most bytes to read from standard error, and from a login shell before the command's own output."""
# ssh prints this if two commands begin at once after a break; the connection may be shared or not.
NOISE = re.compile(r"^ControlSocket .* already exists, disabling multiplexing\r?\n", re.MULTILINE)


@dataclass(frozen=True)
class CommandOutput:
    """The exit status and the output of a command that has ended on the target."""

    status: int
    stdout: bytes
    stderr: str


def remote_command(body: str, words: Sequence[str], mark: str) -> str:
    """Return one line for the target's login shell: the script `body`, with `words` as its $1, $2, ...

    `body` is always a constant of rtgauge. All else is a quoted word, which no shell interprets.
    """
    if any("\0" in word for word in words):
        raise InputError("a name has a NUL byte, which no command line can contain")
    return " ".join(shlex.quote(word) for word in ("sh", "-c", WRAPPER.format(body=body), mark, *words))


def command_to_send(body: str, words: Sequence[str], mark: str) -> tuple[str, bytes]:
    """Return the line of `remote_command`, and what to send to its standard input before all else: the words,
    if the line would be too long with them.
    """
    line = remote_command(body, words, mark)
    if len(os.fsencode(line)) <= LONGEST_LINE:
        return line, b""
    sent = os.fsencode(shlex.join(words))
    return remote_command(f"{TAKE_WORDS}\n{body}", [str(len(sent))], mark), sent


class _Errors:
    """The end of a command's standard error, read at once so that it neither blocks nor fills a disk."""

    def __init__(self) -> None:
        self._read, self.write = os.pipe2(os.O_CLOEXEC)
        self._over = os.eventfd(0, os.EFD_CLOEXEC)
        self._kept: bytearray = bytearray()
        self._reader = threading.Thread(target=self._listen, name="errors", daemon=True)

    def begin(self) -> None:
        """Start reading, because the command has begun and has its own end of the pipe."""
        os.close(self.write)
        self._reader.start()

    def abandon(self) -> None:
        """Close everything, because no command has begun."""
        for descriptor in (self._read, self.write, self._over):
            os.close(descriptor)

    def _listen(self) -> None:
        ready = select.poll()
        ready.register(self._read, select.POLLIN)
        ready.register(self._over, select.POLLIN)
        ended = False
        while True:
            heard = {descriptor for descriptor, _ in ready.poll(0 if ended else None)}
            if self._read in heard:
                piece = os.read(self._read, PIPE_PIECE)
                if not piece:
                    return
                self._kept += piece
                if len(self._kept) > 2 * MOST_BEFORE:
                    del self._kept[:-MOST_BEFORE]
            elif ended:
                return  # a connection that others share keeps the pipe open
            if self._over in heard and not ended:
                ended = True
                ready.unregister(self._over)

    def end(self) -> bytes:
        """Return the last output of the command, which has ended."""
        os.eventfd_write(self._over, 1)
        self._reader.join(END_S)
        if not self._reader.is_alive():
            os.close(self._read)
            os.close(self._over)
        # Otherwise another program may flood the shared pipe, and the thread keeps its descriptors.
        return bytes(self._kept[-MOST_BEFORE:])


class Ended(NamedTuple):
    """The end of a command: its status (None if the connection ended first), and its standard error."""

    status: int | None
    stderr: str


class Channel:
    """A command that runs on the target."""

    def __init__(
        self,
        connection: SshConnection,
        body: str,
        words: Sequence[str],
        send: IO[bytes] | bytes | None = None,
        *,
        first: bool = False,
    ) -> None:
        """`send`: what to send to its standard input, to the end; None: the caller sends it."""
        self._connection = connection
        self.mark = f"rtgauge-{secrets.token_hex(8)}"
        line, ahead = command_to_send(body, words, self.mark)
        if ahead and not isinstance(send, bytes | None):
            raise InputError("a command that reads a file must be shorter")
        command = [*connection.command(interactive=first), line]
        self._arrived: bytearray = bytearray()
        self._finished = False
        self._errors = _Errors()
        try:
            # Only the first command may ask the user for a password. No other gets Ctrl-C from the terminal.
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if isinstance(send, bytes | None) else send,
                stdout=subprocess.PIPE,
                stderr=self._errors.write,
                start_new_session=not first,
            )
        except BaseException as error:
            self._errors.abandon()
            if isinstance(error, FileNotFoundError):
                raise MeasureError(
                    "the program ssh is not installed on this machine: apt-get install openssh-client"
                ) from None
            if isinstance(error, OSError):
                raise MeasureError(f"ssh cannot be started: {error.strerror}") from None
            raise
        self._errors.begin()
        whole = isinstance(send, bytes)
        if whole or ahead:
            data = ahead + send if whole else ahead
            threading.Thread(target=_feed, args=(self.process, data, whole), daemon=True).start()

    def _more(self, deadline: float | None) -> bytes:
        """Return the bytes that have arrived on standard output; empty at its end.

        Raises TimeoutError if none come before `deadline`.
        """
        assert self.process.stdout is not None  # noqa: S101 - Popen was asked for a pipe
        try:
            ready = select.poll()
            ready.register(self.process.stdout, select.POLLIN)
            if not ready.poll(None if deadline is None else max(0.0, deadline - time.monotonic()) * 1_000):
                raise TimeoutError
            return os.read(self.process.stdout.fileno(), PIPE_PIECE)
        except TimeoutError:
            raise
        except (OSError, ValueError):
            return b""  # another thread closed it

    def line(self, most: int, timeout_s: float | None = None) -> bytes:
        """Return the next line of standard output with its newline. The line is cut after `most` bytes or
        where the output ends, and empty at the end.

        Raises TimeoutError if the line is not complete in time. The next call then returns all of it.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        looked = 0
        while True:
            end = self._arrived.find(b"\n", looked, most) + 1
            if end or len(self._arrived) >= most:
                return self._take(end or most)
            looked = len(self._arrived)
            piece = self._more(deadline)
            if not piece:
                return self._take(looked)
            self._arrived += piece

    def _take(self, size: int) -> bytes:
        taken = bytes(self._arrived[:size])
        del self._arrived[:size]
        return taken

    def piece(self, timeout_s: float) -> bytes:
        """Return some standard output; empty at its end. Raises TimeoutError if nothing comes in time."""
        return self._take(len(self._arrived)) if self._arrived else self._more(time.monotonic() + timeout_s)

    def skip_to_mark(self, timeout_s: float = PATIENCE_S) -> bool:
        """Skip to the command's own standard output. Return False if the output ends before that.

        Raises ConnectionBroken if this takes too long.
        """
        mark, skipped, deadline = self.mark.encode() + b"\n", 0, time.monotonic() + timeout_s
        try:
            while (line := self.line(MOST_BEFORE, deadline - time.monotonic())) and skipped < MOST_BEFORE:
                if line.endswith(mark):
                    return True
                skipped += len(line)
        except TimeoutError:
            self.kill()
            raise self.silent(timeout_s) from None
        return False

    def silent(self, waited_s: float) -> ConnectionBroken:
        """Return the error for a target that does not answer."""
        name = self._connection.address.name
        return ConnectionBroken.to(name, f"{name} did not answer within {waited_s:g} s")

    def read_all(self, timeout_s: float | None = None) -> bytes:
        """Return the rest of standard output.

        Raises MeasureError if it is too long, TimeoutError if it does not end in time.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        output = bytearray(self._take(len(self._arrived)))
        while piece := self._more(deadline):
            output += piece
            if len(output) > MOST_ANSWER:
                raise MeasureError(
                    f"the target sent more than {MOST_ANSWER >> 20} MiB in reply to one command"
                )
        return bytes(output)

    def finish(self) -> Ended:
        """Wait until ssh has ended, after the end of the output. Return the command's status and errors."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self._finished:
            return Ended(None, "")
        self._finished = True
        stderr = NOISE.sub("", self._errors.end().decode(errors="replace"))
        match = re.search(rf"{self.mark} ([0-9]{{1,3}})\n", stderr)
        return Ended(None, stderr) if match is None else Ended(int(match[1]), stderr.replace(match[0], ""))

    def kill(self) -> None:
        """Let go of the command, which continues on the target."""
        self.process.kill()
        self.finish()


def _remove_stale(parent: Path) -> None:
    """Remove control folders that this user's killed processes left, unless their connection still runs."""
    for folder in parent.glob(f"{CONTROL_PREFIX}*-*"):
        pid = folder.name.removeprefix(CONTROL_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            own = not folder.is_symlink() and folder.stat().st_uid == os.getuid()
            if own and pid.isdecimal() and not Path("/proc", pid).exists() and not _answers(folder / "c"):
                shutil.rmtree(folder, ignore_errors=True)


def _answers(path: Path) -> bool:
    """Return whether a connection listens at this socket: a master may outlive rtgauge (ControlPersist)."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def _control_folder() -> Path:
    """Make a private folder whose path is short enough for a socket. Remove folders of killed processes."""
    for parent in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108 - mkdtemp makes a private folder in it
        if (
            parent is not None
            and "%" not in parent
            and len(parent) < LONGEST_CONTROL_PATH
            and os.access(parent, os.W_OK)
        ):
            _remove_stale(Path(parent))
            return Path(tempfile.mkdtemp(prefix=f"{CONTROL_PREFIX}{os.getpid()}-", dir=parent))
    raise MeasureError(
        "the paths of all temporary folders are too long for the ssh connection's socket; set TMPDIR to a "
        "shorter one, such as /tmp"
    )


def _feed(process: subprocess.Popen[bytes], data: bytes, whole: bool) -> None:
    """Write to standard input, and close it after the whole, while another thread reads the output."""
    assert process.stdin is not None  # noqa: S101 - Popen was asked for a pipe
    with contextlib.suppress(OSError, ValueError):
        process.stdin.write(data)
        process.stdin.flush()
    with contextlib.suppress(OSError, ValueError):
        if whole:
            process.stdin.close()


class SshConnection:
    """Runs commands on a target.

    All commands share one connection. If it breaks, the next command makes a new one.
    """

    def __init__(self, address: SshAddress) -> None:
        """Prepare the connection; the first command makes it."""
        self.address = address
        self._folder = _control_folder()
        self._asked = False

    def command(self, *, interactive: bool) -> list[str]:
        """Return the ssh command line. `interactive`: whether ssh may ask for a password or host key."""
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
            **({} if interactive else {"BatchMode": "yes"}),
            **dict(self.address.options),
        }
        own = ["-F", "none"] if self.address.options else []
        command = [
            "ssh",
            *own,
            *(word for name, value in options.items() for word in ("-o", f"{name}={value}")),
        ]
        command += ["-J", self.address.jump] if self.address.jump is not None else []
        command += ["-l", self.address.user] if self.address.user is not None else []
        command += ["-p", str(self.address.port)] if self.address.port is not None else []
        return [*command, "--", self.address.host]

    def channel(self, body: str, words: Sequence[str] = (), send: IO[bytes] | bytes | None = None) -> Channel:
        """Start the script `body` with `words` as its $1, $2, ... and return its channel.

        `send`: what to send to its standard input, to the end; None: the caller sends it. Raises MeasureError
        if ssh cannot be started.
        """
        first = not self._asked and os.isatty(2)
        self._asked = True
        return Channel(self, body, words, send, first=first)

    def run(
        self,
        body: str,
        words: Sequence[str] = (),
        send: bytes | IO[bytes] = b"",
        timeout_s: float = PATIENCE_S,
    ) -> CommandOutput:
        """Run the script `body` with `words` as its $1, $2, ... and `send` as its standard input, to its end.

        Raises ConnectionBroken if the connection breaks or `timeout_s` is over before that, MeasureError if
        the output is too long.
        """
        channel = self.channel(body, words, send)
        try:
            output = channel.read_all(timeout_s)
        except TimeoutError:
            channel.kill()
            raise channel.silent(timeout_s) from None
        except BaseException:
            channel.kill()
            raise
        status, stderr = channel.finish()
        if status is None:
            raise explain_ssh(stderr, self.address)
        _, marked, own = output.partition(channel.mark.encode() + b"\n")
        return CommandOutput(status, own if marked else b"", stderr)

    def close(self) -> None:
        """End the shared connection."""
        if (self._folder / "c").exists():
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                command = [*self.command(interactive=False)[:-2], "-O", "exit", "--", self.address.host]
                run_program(command, timeout_s=CONNECT_S)
        shutil.rmtree(self._folder, ignore_errors=True)
