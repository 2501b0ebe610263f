# SPDX-License-Identifier: MIT
"""The emulated instrument with its serial line as a pseudo-terminal: firmware/test/bridge.mjs behind a
pty.
"""

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
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRMWARE = Path(__file__).parents[2] / "firmware"


class EmulatedBoard:
    """`path`: of the pty.

    `wire`: the UDP port at which a master of this machine toggles the answer line. Use as a context.
    """

    def __init__(self, **script: object) -> None:
        node = shutil.which("node")
        assert node is not None, "make test-firmware installs Node.js"
        command = [node, str(FIRMWARE / "test" / "bridge.mjs"), json.dumps(script)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._port, self.wire = map(int, self._process.stdout.readline().split())
        self.path = ""
        self._ends: list[int] = []

    def __enter__(self) -> Self:
        self.plug()
        return self

    def __exit__(self, *_: object) -> None:
        if self._ends:
            self.unplug()
        self._process.communicate(b"")

    def plug(self) -> None:
        """The cable is plugged in: a port of another name, as it may be."""
        master, slave = os.openpty()
        tty.setraw(slave)
        stop_read, stop_write = os.pipe()
        self.path = os.ttyname(slave)
        self._ends = [master, slave, stop_read, stop_write]
        connection = socket.create_connection(("127.0.0.1", self._port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pump = threading.Thread(target=_pump, args=(master, connection, stop_read), daemon=True)
        self._pump.start()

    def unplug(self) -> None:
        """The cable is pulled: whoever has the port open is hung up on."""
        os.write(self._ends[3], b"x")
        self._pump.join()
        for descriptor in self._ends:
            os.close(descriptor)
        self._ends = []


@contextlib.contextmanager
def emulated_instrument(**script: object) -> Iterator[str]:
    """The path of the pty. `script`: `delays` or `distances`, in ticks, as bridge.mjs has them."""
    with EmulatedBoard(**script) as board:
        yield board.path


def _pump(master: int, connection: socket.socket, stop: int) -> None:
    with connection:
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
