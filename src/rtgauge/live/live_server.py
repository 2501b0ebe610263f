# SPDX-License-Identifier: MIT
"""The server of the live page: Starlette under uvicorn, in a thread of its own with the lowest priority, which ends with the run.

On a loopback address everybody on this machine may look; on any other one the address has a token. The Host of a request must be the address that was
given, so that no page from elsewhere can look through a browser (DNS rebinding), and a WebSocket must come from this page."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import secrets
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from rtgauge.errors import InputError, MeasureError

if TYPE_CHECKING:
    from rtgauge.live.application import LiveApplication
    from rtgauge.live.live_state import LiveState

DEFAULT_PORT = 8377
LAST_WORD_S = 2.0
"""For browsers to get the last document."""


@dataclass(frozen=True)
class Address:
    """Where to listen; port 0: any that is free."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback


def parse_address(text: str) -> Address:
    """`ADDRESS:PORT`, `[ADDRESS]:PORT`, `PORT`, `ADDRESS` or nothing (loopback). Raises InputError."""
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
        example = f"e.g. 127.0.0.1:{DEFAULT_PORT}, or 0.0.0.0:{DEFAULT_PORT} for other computers too"
        raise InputError(f"--live {text!r}: give ADDRESS:PORT with an IP address of this machine, {example}") from None
    return Address(host, number)


def _lowest_priority() -> None:
    """Of the calling thread alone; real-time threads go before it in any case."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


class LiveServer:
    """Serves the page while it is entered. Raises InputError where the address is none of this machine's, or taken."""

    def __init__(self, state: LiveState, address: Address) -> None:
        self.state = state
        self.address = address
        self.token = None if address.loopback else secrets.token_urlsafe(18)
        self._application: LiveApplication | None = None
        self._server: Any = None
        self._thread: threading.Thread | None = None
        self._socket: socket.socket | None = None

    @property
    def url(self) -> str:
        """What to open in a browser."""
        host = self.address.host
        if host in {"0.0.0.0", "::"}:  # noqa: S104 - the user asked for it
            host = socket.gethostname()
        port = self._socket.getsockname()[1] if self._socket is not None else self.address.port
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}/" + (f"?token={self.token}" if self.token else "")

    def __enter__(self) -> Self:
        try:
            import uvicorn

            from rtgauge.live.application import LiveApplication
            from rtgauge.live.bounded_protocols import bounds
        except ImportError:
            raise InputError("the live page needs starlette, uvicorn and websockets: install rtgauge with its dependencies") from None
        family = socket.AF_INET6 if ":" in self.address.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self.address.host, self.address.port))
        except OSError as error:
            listening.close()
            where = f"{self.address.host}:{self.address.port}"
            remedy = "--live 0 takes a port that is free" if error.errno == errno.EADDRINUSE else "give another one, e.g. --live 0.0.0.0:8377"
            raise InputError(f"--live: {where} cannot be listened on ({error.strerror}); {remedy}") from None
        self._socket = listening
        self._application = LiveApplication(self.state, self.address.host, self.token)
        config = uvicorn.Config(
            self._application.routes, log_level="critical", access_log=False, lifespan="off", timeout_graceful_shutdown=int(LAST_WORD_S), **bounds()
        )
        self._server = uvicorn.Server(config)
        # Signals belong to the run.
        self._thread = threading.Thread(target=self._serve, name="rtgauge-live", daemon=True)
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise MeasureError("the live page could not be started")
            self._thread.join(0.01)
        return self

    def _serve(self) -> None:
        _lowest_priority()
        self._server.run(sockets=[self._socket])

    def __exit__(self, *_: object) -> None:
        self.state.run_ends()
        if self._thread is not None and self._application is not None:
            # Each browser gets the last document within half a second.
            end_s = time.monotonic() + LAST_WORD_S
            while self._application.browsers and self._thread.is_alive() and time.monotonic() < end_s:
                self._thread.join(0.05)
            self._server.should_exit = True
            self._thread.join(2 * LAST_WORD_S)
        if self._socket is not None:
            self._socket.close()
