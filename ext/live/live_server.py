# SPDX-License-Identifier: MIT
"""Starts and feeds the process that serves the live page (`page_process`).

The process that measures sends at most two documents a second, and frames, however many requests come.

Anyone on this machine may open a loopback address; any other address needs a token. On loopback, a request
must have this machine's Host, so that no foreign page can read this page through a browser (DNS rebinding),
and a WebSocket must come from this page.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import json
import secrets
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from rtgauge.errors import InputError, MeasureError

DEFAULT_PORT = 8377
EACH_S = 0.5
"""The time between two documents."""
REQUEST_S = 10.0
"""The time within which a connection must become a WebSocket or end. The page has some KB, so only a slow
connection needs more time.
"""
LAST_WORD_S = 2
"""The time for browsers to get the last document."""


TEMPLATE = Path(__file__).parent / "templates" / "live.html"


HEAD = "<BI"
"""The head of each message to the page's process: the kind, and the length in bytes."""
GIVEN, DOCUMENT, LAST, FRAME = range(4)
"""The kinds: JSON with host, token, template, views and limits (first); document; last document; frame."""
COUNTS = "<HH"
"""A message from the page's process: the numbers of browsers that get documents and that get frames. It is
sent when the process is ready, and at each change.
"""


class LivePage(Protocol):
    """What a page shows."""

    watchers: int
    """How many browsers want frames; the server sets it."""
    on_frame: Callable[[], None]
    """Called for each new frame; the server sets it."""

    @property
    def ended(self) -> bool:
        """Whether nothing new will come."""
        ...

    def run_ends(self) -> None:
        """Say that nothing new will come."""

    def frame_message(self) -> tuple[int, bytes | None]:
        """Return the newest frame's number and message; None if there is none."""
        ...

    def document(self) -> bytes:
        """Return the JSON that the page shows."""
        ...


@dataclass(frozen=True)
class Address:
    """The address to listen on. Port 0 means any free port."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback


def parse_address(text: str) -> Address:
    """Parse `ADDRESS:PORT`, `[ADDRESS]:PORT`, `PORT`, `ADDRESS` or nothing (loopback). Raises InputError."""
    host, port = "127.0.0.1", str(DEFAULT_PORT)
    if text.isdigit():
        port = text
    elif text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        port = rest.removeprefix(":") or (port if closed else "")
    elif text.count(":") == 1:
        host, port = text.split(":")
    elif text:
        host = text
    try:
        if host != "localhost":
            ipaddress.ip_address(host)
        number = int(port)
        if not 0 <= number < 65536 or not port.isascii():
            raise ValueError
    except ValueError:
        example = f"e.g. 127.0.0.1:{DEFAULT_PORT}, or 0.0.0.0:{DEFAULT_PORT} to reach it from other machines"
        raise InputError(
            f"--live {text!r}: give ADDRESS:PORT with an IP address of this machine, {example}"
        ) from None
    return Address(host, number)


def _listen_on(address: Address) -> socket.socket:
    """Return a socket bound to the address. Raises InputError."""
    listening = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
    except OSError as error:
        listening.close()
        remedy = (
            "use --live 0 to let rtgauge choose a free port"
            if error.errno == errno.EADDRINUSE
            else "give another address, e.g. --live 0.0.0.0:8377"
        )
        raise InputError(
            f"--live: {address.host}:{address.port} cannot be used ({error.strerror}); {remedy}"
        ) from None
    return listening


class LiveServer:
    """Serves the page while the context is open.

    `views`: the page's scripts that draw simulations. `request_s`: the time that a connection has for its
    request. `template`: the page. Entering raises InputError if the address is in use or not on this machine,
    MeasureError if the server does not start.
    """

    def __init__(
        self,
        state: LivePage,
        address: Address,
        views: Sequence[str] = (),
        request_s: float = REQUEST_S,
        template: Path = TEMPLATE,
    ) -> None:
        self.state = state
        self.address = address
        self.token = None if address.loopback else secrets.token_urlsafe(18)
        self._views, self._template = list(views), template
        self._request_s = request_s
        self._port = address.port
        self._browsers = 0
        self._news = threading.Event()
        """Set when a frame arrives, a browser comes or goes, or the run ends."""

    @property
    def url(self) -> str:
        """The URL to open in a browser."""
        host = self.address.host
        if host in {"0.0.0.0", "::"}:  # noqa: S104 - the user asked for it
            host = socket.gethostname()
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self._port}/" + (f"?token={self.token}" if self.token else "")

    def __enter__(self) -> Self:
        self._page_socket, page_end = socket.socketpair()
        with _listen_on(self.address) as listening, page_end:
            self._port = listening.getsockname()[1]
            descriptors = (listening.fileno(), page_end.fileno())
            command = [sys.executable, "-P", "-m", "rtgauge_ext.live.page_process", *map(str, descriptors)]
            null = subprocess.DEVNULL
            # Signals from the terminal are for the run.
            self.process = subprocess.Popen(
                command, stdin=null, stdout=null, stderr=null, pass_fds=descriptors, start_new_session=True
            )
        given = {
            "host": self.address.host,
            "token": self.token,
            "views": self._views,
            "template": str(self._template),
            "request_s": self._request_s,
            "last_word_s": LAST_WORD_S,
        }
        # Other users could read the token on a command line.
        self._send(GIVEN, json.dumps(given).encode())
        if not self._hear():
            self.process.wait()
            raise MeasureError(
                "the live page needs websockets, which is missing; install rtgauge with its dependencies"
            )
        self.state.on_frame = self._news.set
        self._threads = [
            threading.Thread(target=work, name="rtgauge-live", daemon=True)
            for work in (self._feed, self._count)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def _send(self, kind: int, content: bytes) -> None:
        with contextlib.suppress(OSError):  # the run continues without its page
            self._page_socket.sendall(struct.pack(HEAD, kind, len(content)) + content)

    def _hear(self) -> bool:
        """Receive the numbers of browsers. Return False if the page's process has ended."""
        counts = b""
        with contextlib.suppress(OSError):
            counts = self._page_socket.recv(struct.calcsize(COUNTS), socket.MSG_WAITALL)
        self._browsers, self.state.watchers = (
            struct.unpack(COUNTS, counts) if len(counts) == struct.calcsize(COUNTS) else (0, 0)
        )
        self._news.set()
        return bool(counts)

    def _count(self) -> None:
        while self._hear():
            pass

    def _feed(self) -> None:
        """Send documents and the newest frames while a browser is connected.

        If the page's process does not read, only this thread blocks.
        """
        sent, due_s = 0, 0.0
        while not self.state.ended:
            self._news.wait(max(due_s - time.monotonic(), 0) if self._browsers else None)
            self._news.clear()
            if self.state.watchers:
                number, message = self.state.frame_message()
                if message is not None and number != sent:
                    self._send(FRAME, message)
                sent = number
            if self._browsers and time.monotonic() >= due_s:
                self._send(DOCUMENT, self.state.document())
                due_s = time.monotonic() + EACH_S
        if self._browsers:
            self._send(LAST, self.state.document())

    def __exit__(self, *_: object) -> None:
        self.state.run_ends()
        self._news.set()
        if self._browsers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(2 * LAST_WORD_S)
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join()
        self._page_socket.close()
