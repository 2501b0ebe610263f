# SPDX-License-Identifier: MIT
"""The emulated instrument with its serial line as a pseudo-terminal: firmware/test/bridge.mjs behind a pty."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import threading
import tty
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRMWARE = Path(__file__).parents[2] / "firmware"


@contextlib.contextmanager
def emulated_instrument(**script: object) -> Iterator[str]:
    """The path of the pty. `script`: `delays` or `distances`, in ticks, as bridge.mjs has them."""
    node = shutil.which("node")
    assert node is not None, "make test-firmware installs Node.js"
    command = [node, str(FIRMWARE / "test" / "bridge.mjs"), json.dumps(script)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    master, slave = os.openpty()
    stop_read, stop_write = os.pipe()
    try:
        tty.setraw(slave)
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pump = threading.Thread(target=_pump, args=(master, connection, stop_read), daemon=True)
            pump.start()
            yield os.ttyname(slave)
            os.write(stop_write, b"x")
            pump.join()
    finally:
        process.communicate(b"")
        for descriptor in (master, slave, stop_read, stop_write):
            os.close(descriptor)


def _pump(master: int, connection: socket.socket, stop: int) -> None:
    while True:
        ready, _, _ = select.select([master, connection, stop], [], [])
        if stop in ready:
            return
        if connection in ready:
            data = connection.recv(4096)
            if not data:
                return
            while data:
                data = data[os.write(master, data) :]
        if master in ready:
            connection.sendall(os.read(master, 4096))
