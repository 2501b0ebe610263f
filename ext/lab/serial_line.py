# SPDX-License-Identifier: MIT
"""Connects ssh to a guest that has only serial lines.

`python -m rtgauge_ext.lab.serial_line PORT FOLDER` is a ProxyCommand with ProxyUseFdpass (ssh_config(5)).

A serial line has no connections that end, so an earlier client's server may still run. A line with a random
word is sent until the guest's `serve-line` returns it. An earlier server reads this line as a broken packet
and ends. One more line then starts the new server.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import sys
import time
from pathlib import Path

from rtgauge_ext.lab.ssh import trust_last_boot

HELLO, READY, GO, BEGIN = (f"rtgauge-{word}" for word in ("hello", "ready", "go", "begin"))
AGAIN_S = 0.5
"""The time between two words, because the earlier server may be ending or the guest booting."""
PATIENCE_S = 60.0


def synchronise(line: socket.socket, patience_s: float = PATIENCE_S) -> None:
    """Return once the guest's server begins to serve this client, without reading any of its output.

    Raises TimeoutError if nobody answers, OSError if the line fails.
    """
    word = secrets.token_hex(8)
    deadline = time.monotonic() + patience_s
    line.settimeout(AGAIN_S)
    while True:
        line.sendall(f"\n{HELLO} {word}\n".encode())
        with contextlib.suppress(TimeoutError):
            _skip_to(line, f"{READY} {word}\n".encode())
            break
        if time.monotonic() > deadline:
            raise TimeoutError(f"no answer within {patience_s:g} s")
    line.settimeout(patience_s)
    line.sendall(f"{GO} {word}\n".encode())
    _skip_to(line, f"{BEGIN} {word}\n".encode())
    line.setblocking(True)


def _skip_to(line: socket.socket, mark: bytes) -> None:
    """Read up to the end of `mark`, but no further. Raises OSError if the line fails."""
    answer = b""
    while answer != mark:
        byte = line.recv(1)
        if not byte:
            raise ConnectionError("the guest has ended")
        answer = (answer + byte)[-len(mark) :]


def main(port: str, folder: str | None = None) -> None:
    """Connect, wait for the guest's server, and pass the connection to ssh, whose socket is standard output.

    The guest may have been reset. Its new host key is then on its console, in its `folder`.
    """
    try:
        with socket.create_connection(("127.0.0.1", int(port)), timeout=PATIENCE_S) as line:
            synchronise(line)
            if folder is not None:
                trust_last_boot(Path(folder))
            with socket.socket(fileno=sys.stdout.fileno()) as ssh:
                socket.send_fds(ssh, [b"\0"], [line.fileno()])
                ssh.detach()
    except OSError as error:
        sys.exit(f"the serial line of the guest failed: {error.strerror or error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
