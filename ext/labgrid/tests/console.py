# SPDX-License-Identifier: MIT
"""A board's serial console: a shell on a pseudo-terminal, and a cable to whoever connects."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import socket
import subprocess
import termios
import threading
import tty
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

PIECE = 1 << 16
MOST_CAUGHT = 1 << 20
ROOM_S = 10.0
"""How long the board waits for whoever reads the adapter's terminal; what comes then is lost."""


class SerialConsole:
    """Use as a context. `command`: what runs on the terminal, as its session's leader.

    The cable ends at a TCP port (`port`) and at a second terminal, as of a serial adapter (`adapter`).
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self.said = bytearray()
        """What came from the board, while somebody was connected or not."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._board, self._terminal = pty.openpty()
        self._cable, adapter = pty.openpty()
        tty.setraw(adapter)
        self.adapter = Path(os.ttyname(adapter))
        self._kept = adapter
        self._client: socket.socket | None = None
        self._over = threading.Event()

    def __enter__(self) -> Self:
        self._shell = subprocess.Popen(
            ["setsid", "-c", *self._command],
            stdin=self._terminal,
            stdout=self._terminal,
            stderr=self._terminal,
        )
        self._pump = threading.Thread(target=self._run, daemon=True)
        self._pump.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._pump.join()
        self._shell.kill()
        self._shell.wait()
        self._listener.close()

    def _run(self) -> None:
        while not self._over.is_set():
            watched = [self._board, self._cable, self._listener, *([self._client] if self._client else [])]
            ready, _, _ = select.select(watched, [], [], 0.1)
            for each in ready:
                if each is self._listener:
                    self._client, _ = self._listener.accept()
                elif each == self._board:
                    self._from_board(os.read(self._board, PIECE))
                elif each == self._cable:
                    self._to_board(os.read(self._cable, PIECE))
                elif self._client is not None:
                    with contextlib.suppress(ConnectionError):
                        if data := self._client.recv(PIECE):
                            self._to_board(data)
                            continue
                    self._client.close()
                    self._client = None

    def _from_board(self, data: bytes) -> None:
        self.said = (self.said + data)[-MOST_CAUGHT:]
        if self._client is not None:
            with contextlib.suppress(ConnectionError):
                self._client.sendall(data)
        elif select.select([], [self._cable], [], ROOM_S)[1]:
            os.write(self._cable, data)

    def _to_board(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._board, data[:1024]) :]

    def type(self, text: str) -> None:
        """What a user types."""
        self._to_board(text.encode())

    def is_usable(self) -> bool:
        """Whether the terminal echoes and edits lines."""
        modes = termios.tcgetattr(self._board)[3]
        return bool(modes & termios.ECHO) and bool(modes & termios.ICANON)
