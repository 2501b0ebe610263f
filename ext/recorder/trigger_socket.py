# SPDX-License-Identifier: MIT
"""A socket at which the program itself pulls the trigger, by a datagram."""

from __future__ import annotations

import os
import socket
import stat
import struct
import time
from contextlib import suppress
from pathlib import Path

from rtgauge.errors import InputError
from rtgauge.escape import one_line
from rtgauge.units import NS_PER_S
from rtgauge_ext.recorder.program import Program
from rtgauge_ext.recorder.triggers import Trigger

MESSAGE = "message"
MOST_BYTES = 100
SO_TIMESTAMPNS = 35
"""The kernel adds the time at which a datagram was sent (socket(7)); Python has no name for it."""
TIME = struct.Struct("2q")
CREDENTIALS = struct.Struct("3i")
"""A sender's process, user and group, as the kernel adds them (unix(7), SCM_CREDENTIALS)."""


ANCILLARY = socket.CMSG_SPACE(CREDENTIALS.size) + socket.CMSG_SPACE(TIME.size)


class Messages:
    """An open socket. Only root and the user of the recorded program can send, and only root and the program
    itself can pull the trigger; others are counted.
    """

    def __init__(self, path: Path) -> None:
        """Bind the socket. Raises InputError if the path is not free."""
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        try:
            if path.is_socket():
                path.unlink()  # a recorder that was killed left it
            mask = os.umask(0o177)  # until the program runs, only root may send
            try:
                self._socket.bind(str(path))
            finally:
                os.umask(mask)
        except OSError as error:
            self._socket.close()
            raise InputError(f"--socket {path}: {error.strerror or error}") from None
        self._made = path.lstat().st_ino
        self._place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._user = os.geteuid()
        self.refused = 0

    def fileno(self) -> int:
        """Return the descriptor, for a selector."""
        return self._socket.fileno()

    def let(self, user: int | None) -> None:
        """Let this user send, and nobody else but root: others could fill the queue. None: no change.

        Raises OSError.
        """
        if user is None or user == self._user:
            return
        if stat.S_ISSOCK(os.fstat(self._place).st_mode):  # the path may have another file by now
            os.chown(f"/proc/self/fd/{self._place}", user, -1)
        self._user = user

    def read(self, program: Program | None) -> list[Trigger]:
        """Return the triggers that have come."""
        triggers: list[Trigger] = []
        with suppress(BlockingIOError):
            while True:
                data, ancillary, _, _ = self._socket.recvmsg(MOST_BYTES, ANCILLARY)
                if _may(ancillary, program):
                    text = one_line(data.decode(errors="replace").strip())
                    triggers.append(Trigger(MESSAGE, text or "an empty message", _sent_ns(ancillary)))
                else:
                    self.refused += 1
        return triggers

    def close(self) -> None:
        """Close and remove the socket."""
        self._socket.close()
        os.close(self._place)
        with suppress(OSError):
            about = self._path.lstat()
            if stat.S_ISSOCK(about.st_mode) and about.st_ino == self._made:
                self._path.unlink()


def _sent_ns(ancillary: list[tuple[int, int, bytes]]) -> int:
    """Return when the datagram was sent (CLOCK_MONOTONIC), by its distance to now; 0: unknown."""
    for level, kind, data in ancillary:
        if (level, kind, len(data)) == (socket.SOL_SOCKET, SO_TIMESTAMPNS, TIME.size):
            seconds, ns = TIME.unpack(data)
            ago_ns = time.clock_gettime_ns(time.CLOCK_REALTIME) - (seconds * NS_PER_S + ns)
            return time.clock_gettime_ns(time.CLOCK_MONOTONIC) - max(0, ago_ns)
    return 0


def _may(ancillary: list[tuple[int, int, bytes]], program: Program | None) -> bool:
    """Return whether the sender is root or the recorded program."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
            pid, user, _ = CREDENTIALS.unpack(data[: CREDENTIALS.size])
            return user == 0 or (program is not None and pid == program.pid)
    return False
