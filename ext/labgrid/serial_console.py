# SPDX-License-Identifier: MIT
"""Logs in to a board over its serial console. Its shell starts an SSH server on the line.

`python -m rtgauge_ext.labgrid.serial_console FOLDER` is a ProxyCommand (ssh_config(5)). It outlives ssh until
the board's console is a shell or a login prompt again. If it is killed, the server hears nothing and ends,
and the script on the board restores the console.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from rtgauge.errors import InputError, MeasureError
from rtgauge.program_run import run_program
from rtgauge.record.files import write_whole

PASSWORD = "RTGAUGE_CONSOLE_PASSWORD"  # noqa: S105 - the name of the variable that has it
LINE, KEY, TROUBLE, OVER = "line.json", "key.pub", "trouble", "over"
"""Files of a connection: its description, its key and lock, why it could not begin, and its end."""
PIECE = 1 << 16
READ_S = 0.2
QUIET_S = 1.0
"""After this silence (s), a prompt is complete and nobody else is writing."""
BOOT_QUIET_S = 5.0
"""The same while a board boots, when a key press would stop the boot loader's countdown."""
SHELL_S = 30.0
"""How long (s) a running board may take to show a prompt. A slow SSH server also ends within this time."""
START_S = 30.0
"""How long (s) the board may take to make a host key and start its server."""
END_S = 15.0
"""How long (s) a server may take to end after its client."""
SERVE = r"""
t=$(tty) s=$(stty -g) l=$(cat /proc/sys/kernel/printk) k=
d=$(mktemp -d)
umask 077
[ -n "$d" ] && [ -n "$s" ] || { echo "rtgauge-"none-WORD its shell has no stty or mktemp; exit 1; }
export PATH="$PATH:/usr/sbin:/sbin"
echo KEY >"$d/authorized_keys"
if command -v sshd >/dev/null && command -v ssh-keygen >/dev/null; then
 mkdir -p /run/sshd; ssh-keygen -q -t ed25519 -N "" -f "$d/host" >/dev/null 2>&1
 set -- "$(command -v sshd)" -i -f /dev/null -h "$d/host" -o StrictModes=no
 set -- "$@" -o AuthorizedKeysFile="$d/authorized_keys" -o LoginGraceTime=60
 set -- "$@" -o ClientAliveInterval=10 -o ClientAliveCountMax=3
 [ ! -e /etc/pam.d/sshd ] || set -- "$@" -o UsePAM=yes
elif command -v dropbear >/dev/null && command -v dropbearkey >/dev/null && command -v nc >/dev/null; then
 dropbearkey -t ed25519 -f "$d/host" >/dev/null 2>&1
 k=~root/.ssh/authorized_keys; mkdir -p ~root/.ssh; echo KEY >>"$k"
 dropbear -F -s -p 127.0.0.1:PORT -r "$d/host" -K 10 -W 4096 -P "$d/pid" >/dev/null 2>&1 </dev/null &
 for n in 1 2 3 4 5 6 7 8 9; do grep -q " 0100007F:HEXA 00000000:0000 0A" /proc/net/tcp || sleep 1; done
 set -- nc 127.0.0.1 PORT
else
 rm -rf "$d"; echo "rtgauge-"none-WORD it has neither sshd nor dropbear with nc; exit 1
fi
echo 1 >/proc/sys/kernel/printk
stty raw -echo
echo "rtgauge-"begin-WORD
"$@" <"$t" >"$t" 2>/dev/null
[ ! -s "$d/pid" ] || kill "$(cat "$d/pid")"
[ -z "$k" ] || { grep -v WORD "$k" >"$d/k"; cat "$d/k" >"$k"; [ -s "$k" ] || rm "$k"; }
echo "$l" >/proc/sys/kernel/printk
rm -rf "$d"
stty "$s"
echo "rtgauge-"end-WORD
"""
"""The script that the board's shell runs. Kernel messages would break the connection, so they go only to the
kernel's log. sshd accepts any file as its connection, Dropbear only a socket. sshd gets a file of keys.
Dropbear gets a line in root's file, because its option `-D` is new and refuses many folders.
"""


class ConsoleError(MeasureError):
    """The console gives no access to a shell."""


@dataclass(frozen=True)
class BoardConsole:
    """A board's serial line. `protocol`: raw or rfc2217. `proxy`: the ssh host through which the line is
    reached.
    """

    host: str
    port: int
    speed: int
    protocol: str
    proxy: str | None = None

    def open(self) -> SerialLine:
        """Open the line. Raises OSError, InputError for an unknown protocol."""
        if self.protocol == "raw":
            return _Raw(self._connection())
        if self.protocol == "rfc2217":
            return _Rfc2217(self)
        raise InputError(
            f"the console's protocol {self.protocol[:40]} is not supported; export the console as raw or "
            f"rfc2217"
        )

    def _connection(self) -> socket.socket:
        if self.proxy is None:
            return socket.create_connection((self.host, self.port), timeout=SHELL_S)
        here, there = socket.socketpair()
        with there:
            self.forward(there)
        return here

    def forward(self, there: socket.socket) -> None:
        """Connect a socket to the line through the proxy."""
        command = ["ssh", "-o", "BatchMode=yes", "-W", f"[{self.host}]:{self.port}", "--", str(self.proxy)]
        subprocess.Popen(command, stdin=there.fileno(), stdout=there.fileno(), stderr=subprocess.DEVNULL)


class _Raw:
    """A line through a TCP connection that passes bytes on."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.settimeout(READ_S)

    def read(self) -> bytes:
        """Return the bytes that have arrived; empty if none arrive within READ_S. Raises OSError if the line
        is gone.
        """
        try:
            piece = self._connection.recv(PIECE)
        except TimeoutError:
            return b""
        if not piece:
            raise ConnectionError("the console's server ended the connection")
        return piece

    def write(self, data: bytes) -> None:
        while data:
            with contextlib.suppress(TimeoutError):
                data = data[self._connection.send(data) :]


class _Rfc2217:
    """A line through pyserial, which connects by itself. For a proxy, it gets a socket on the loopback."""

    def __init__(self, console: BoardConsole) -> None:
        import serial

        host, port = console.host, console.port
        if console.proxy is not None:
            listener = socket.create_server(("127.0.0.1", 0))
            host, port = listener.getsockname()[:2]

            def accept() -> None:
                with listener, listener.accept()[0] as there:
                    console.forward(there)

            threading.Thread(target=accept, daemon=True).start()
        self._port = serial.serial_for_url(
            f"rfc2217://{host}:{port}?ign_set_control&timeout=10", console.speed, timeout=READ_S
        )

    def read(self) -> bytes:
        piece: bytes = self._port.read(1)
        return piece + self._port.read(self._port.in_waiting) if piece else piece

    def write(self, data: bytes) -> None:
        self._port.write(data)


SerialLine = _Raw | _Rfc2217


def to_shell(line: SerialLine, patience_s: float, quiet_s: float) -> bool:
    """Wait until a root shell answers on the line. Return whether a login was needed.

    `patience_s`: how long to wait. `quiet_s`: after this silence (s), a prompt is complete.

    If an earlier client's SSH server is still there, it takes the question for a broken packet and ends.
    Raises ConsoleError if nobody answers or root may not log in, OSError.
    """
    word = secrets.token_hex(8)
    question = f'echo "rtgauge"-ready-{word} $(id -u)\n'.encode()
    answer = re.compile(rf"rtgauge-ready-{word} ([0-9]+)".encode())
    heard, logged_in, question_is_next, tried = b"", False, False, False
    end = time.monotonic() + patience_s
    last = time.monotonic()
    while time.monotonic() < end:
        piece = line.read()
        if piece:
            heard, last = (heard + piece)[-4096:], time.monotonic()
            match = answer.search(heard + b"\n")
            if match is not None and heard.endswith((b"\n", b" ")):
                if match[1] != b"0":
                    raise ConsoleError("the user who is logged in on the console is not root; log out there")
                return logged_in
        if time.monotonic() - last < quiet_s:
            continue
        prompt = heard[-80:].decode(errors="replace").rstrip().lower()
        if prompt.endswith("login:") and not tried:
            line.write(b"root\n")
            logged_in = True
        elif prompt.endswith("password:") and logged_in and not tried:
            if PASSWORD not in os.environ:
                raise ConsoleError(f"the console asks for root's password; set {PASSWORD} in the environment")
            line.write(os.environ[PASSWORD].encode() + b"\n")
            tried = True
        elif tried and prompt.endswith("login:"):
            raise ConsoleError(f"the console refused the root password from {PASSWORD}")
        else:
            line.write(question if question_is_next else b"\n")
            question_is_next = not question_is_next
        heard, last = b"", time.monotonic()
    console_text = "".join(c if c.isprintable() else " " for c in heard[-200:].decode(errors="replace"))
    console_text = f"it says {console_text.strip()!r}" if console_text.strip() else "it is silent"
    raise ConsoleError(f"the shell on the console did not answer within {patience_s:.0f} s ({console_text})")


def _skip_to(
    line: SerialLine, mark: re.Pattern[bytes], patience_s: float
) -> tuple[re.Match[bytes], bytes] | None:
    """Read up to a mark. Return its match and the bytes read after it; None if the mark does not come within
    `patience_s`. Raises OSError.
    """
    heard, end = b"", time.monotonic() + patience_s
    while time.monotonic() < end:
        heard = (heard + line.read())[-4 * PIECE :]
        match = mark.search(heard)
        if match is not None:
            return match, heard[match.end() :]
    return None


class Served:
    """An SSH server on a console, which runs between two shell prompts."""

    def __init__(self, line: SerialLine, public_key: str, patience_s: float, quiet_s: float) -> None:
        """Wait for a root shell as `to_shell` does, and start the server. Raises ConsoleError, OSError."""
        self._line = line
        self._word = secrets.token_hex(8)
        self._end = re.compile(f"rtgauge-end-{self._word}".encode())
        self._last = b""
        port = 20000 + secrets.randbelow(10000)
        script = SERVE.strip().replace("HEXA", f"{port:04X}").replace("PORT", str(port))
        key = " ".join(public_key.split()[:2])
        script = script.replace("KEY", f'"{key} WORD"').replace("WORD", self._word)
        logged_in = to_shell(line, patience_s, quiet_s)
        # After a login, the script replaces the shell, so that the script's end logs out.
        line.write(f"{'exec ' if logged_in else ''}sh -c '{script}'\n".encode())
        answered = _skip_to(line, re.compile(rf"rtgauge-(begin|none)-{self._word} ?(.*)\n".encode()), START_S)
        if answered is None:
            raise ConsoleError("the board's shell did not start an SSH server; look at the board's console")
        match, self.first = answered
        if match[1] == b"none":
            why = match[2].decode(errors="replace").strip()
            raise ConsoleError(f"rtgauge cannot log in to the board: {why}")

    def relay(self, over: Callable[[], bool]) -> None:
        """Pass bytes between ssh (standard input and output) and the line, until one of them ends or `over`
        returns True, because the board is to be released.
        """
        ended = threading.Event()

        def send() -> None:
            with contextlib.suppress(OSError):
                while (data := os.read(0, PIECE)) and not ended.is_set():
                    self._line.write(data)
            ended.set()

        threading.Thread(target=send, daemon=True).start()
        piece = self.first
        with contextlib.suppress(OSError):
            while not ended.is_set() and not over():
                os.write(1, piece)  # a pipe accepts all bytes
                piece = self._line.read()
                self._last = (self._last + piece)[-PIECE:]
                if self._end.search(self._last):
                    break
        ended.set()

    def end(self) -> None:
        """Wait until the console is a shell again. A server that does not end gets a broken packet."""
        end = time.monotonic() + END_S
        with contextlib.suppress(OSError):
            while not self._end.search(self._last) and time.monotonic() < end:
                if _skip_to(self._line, self._end, 2 * QUIET_S) is not None:
                    break
                self._line.write(f"#{secrets.token_hex(64)}\n".encode())


class Login:
    """Logs in as root over a console. `folder`: a private folder with a short path, only for this console.

    `options`: ssh options. All commands share one connection.
    """

    def __init__(self, folder: Path, console: BoardConsole) -> None:
        """Make a key. Raises MeasureError."""
        self._folder, self._console = folder, console
        key = folder / "key"
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "rtgauge", "-f", str(key)]
        completed = run_program(command)
        if completed.returncode:
            raise MeasureError(f"cannot make a key in {folder}: {completed.stderr.strip()[:200]}")
        self.options = {
            "ProxyCommand": f"{shlex.quote(sys.executable)} -P -m {__name__} {shlex.quote(str(folder))}",
            "IdentityFile": str(key),
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            # Anyone who has the line has the board, so a host key would prove nothing.
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
            "BatchMode": "yes",
            "Compression": "yes",
            "ConnectTimeout": str(round(SHELL_S + START_S + END_S)),
            "ServerAliveInterval": "20",
            "ServerAliveCountMax": "3",
            "ControlMaster": "auto",
            "ControlPath": str(folder / "c"),
            "ControlPersist": "60",
        }

    def begin(self, patience_s: float = SHELL_S, quiet_s: float = QUIET_S) -> str | None:
        """Make the connection; return why it failed, or None. `patience_s`, `quiet_s`: as in `to_shell`."""
        trouble = self._folder / TROUBLE
        trouble.unlink(missing_ok=True)
        options = {"ConnectTimeout": str(round(patience_s + START_S + END_S)), **self.options}
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        self._write(patience_s, quiet_s)
        completed = subprocess.run(
            ["ssh", "-F", "none", *words, "-l", "root", "--", self._console.host, "true"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        self._write(SHELL_S, QUIET_S)
        if completed.returncode == 0:
            return None
        return (
            trouble.read_text()
            if trouble.exists()
            else "rtgauge could not log in to the SSH server that it started on the board"
        )

    def _write(self, patience_s: float, quiet_s: float) -> None:
        about = {"console": asdict(self._console), "pid": os.getpid()}
        about |= {"patience_s": patience_s, "quiet_s": quiet_s}
        write_whole(self._folder / LINE, json.dumps(about).encode())


def wait_for_end(folder: Path, patience_s: float = 2 * END_S) -> None:
    """End the logins over the consoles whose folders are in `folder`; wait, for at most `patience_s`, until
    the consoles are shells again.
    """
    end = time.monotonic() + patience_s
    for path in folder.glob(f"*/{KEY}"):
        path.with_name(OVER).touch()
        with contextlib.suppress(OSError), path.open() as file:
            while time.monotonic() < end:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(READ_S)
                else:
                    break


def main(folder: Path) -> None:
    """Act as ssh's connection until ssh or the process that holds the board ends; restore the console."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with (folder / KEY).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        about = json.loads((folder / LINE).read_bytes())
        try:
            holder = os.pidfd_open(int(about["pid"]))
            line = BoardConsole(**about["console"]).open()
            patience = float(about["patience_s"]), float(about["quiet_s"])
            served = Served(line, lock.read(), *patience)
        except (OSError, MeasureError, InputError) as error:
            # ssh gives a shared connection no standard error
            write_whole(folder / TROUBLE, str(error).encode())
            sys.exit(1)
        try:
            served.relay(lambda: (folder / OVER).exists() or bool(select.select([holder], [], [], 0)[0]))
        finally:
            served.end()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
