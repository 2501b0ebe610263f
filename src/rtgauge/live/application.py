# SPDX-License-Identifier: MIT
"""What the server of the live page answers: the page, a WebSocket with documents, and one with frames of what a step simulates."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from rtgauge.errors import RecordError
from rtgauge.live.frame_message import frame_message

if TYPE_CHECKING:
    from rtgauge.live.live_state import LiveState

EACH_S = 0.5
"""Between two documents."""
MOST_BROWSERS = 32
MOST_UNREAD = 4
"""Frames on their way to a browser, which answers each: one that cannot follow gets fewer, and none late."""
TEMPLATE = Path(__file__).parent / "templates" / "live.html"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src data:; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
CLOSED = (WebSocketDisconnect, RuntimeError)
"""What Starlette raises where the browser has gone."""


@dataclass(eq=False)
class _Watcher:
    """A browser that gets frames."""

    news: asyncio.Event = field(default_factory=asyncio.Event)
    """A frame has come, or an answer."""
    unread: int = 0


class LiveApplication:
    """The routes. On loopback, the Host of a request must be this machine's; elsewhere it must have the token."""

    def __init__(self, state: LiveState, host: str, token: str | None) -> None:
        self._state = state
        self._host = host
        self._token = token
        self._page = TEMPLATE.read_text(encoding="utf-8")
        self._watchers: set[_Watcher] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._message: tuple[int, bytes | None] = (0, None)
        self.browsers = 0
        self.routes = Starlette(routes=[Route("/", self._show), WebSocketRoute("/live", self._follow), WebSocketRoute("/frames", self._watch)])
        state.on_frame = self._frame_came

    def _allowed(self, connection: HTTPConnection) -> bool:
        if self._token is None:
            host = connection.headers.get("host", "").rsplit(":", 1)[0].strip("[]")
            return host in {"localhost", "127.0.0.1", "::1", self._host}
        return secrets.compare_digest(connection.query_params.get("token", "").encode(), self._token.encode())

    async def _accept(self, socket: WebSocket, present: int) -> bool:
        """Whether the browser may look; it is told."""
        origin, host = socket.headers.get("origin"), socket.headers.get("host", "")
        if not self._allowed(socket) or (origin is not None and origin.split("://")[-1] != host) or present >= MOST_BROWSERS:
            await socket.close(1008)
            return False
        await socket.accept()
        return True

    async def _show(self, request: Request) -> Response:
        if not self._allowed(request):
            return PlainTextResponse("this address needs the token that rtgauge printed", status_code=403, headers=HEADERS)
        return HTMLResponse(self._page, headers=HEADERS)

    async def _follow(self, socket: WebSocket) -> None:
        if not await self._accept(socket, self.browsers):
            return
        self.browsers += 1
        try:
            last = b""
            while True:
                ended, document = self._state.ended, self._state.document()
                if document != last:
                    await socket.send_text(document.decode())
                    last = document
                if ended:
                    break
                await asyncio.sleep(EACH_S)
            await socket.close(1000)
        except CLOSED:
            pass
        finally:
            self.browsers -= 1

    async def _watch(self, socket: WebSocket) -> None:
        if not await self._accept(socket, len(self._watchers)):
            return
        self._loop = asyncio.get_running_loop()
        watcher = _Watcher()
        self._watchers.add(watcher)
        self._state.watchers = len(self._watchers)
        sender = asyncio.create_task(self._send_frames(socket, watcher))
        try:
            while True:
                await socket.receive_text()
                watcher.unread = max(watcher.unread - 1, 0)
                watcher.news.set()
        except CLOSED:
            pass
        finally:
            self._watchers.discard(watcher)
            self._state.watchers = len(self._watchers)
            sender.cancel()

    async def _send_frames(self, socket: WebSocket, watcher: _Watcher) -> None:
        """The newest each time; those that came meanwhile are dropped, which the browser sees by their numbers."""
        sent = self._state.latest_frame()[0]
        with contextlib.suppress(*CLOSED):
            while True:
                await watcher.news.wait()
                watcher.news.clear()
                number, message = self._latest_message()
                if message is not None and number != sent and watcher.unread < MOST_UNREAD:
                    await socket.send_bytes(message)
                    sent = number
                    watcher.unread += 1

    def _latest_message(self) -> tuple[int, bytes | None]:
        """One for all browsers."""
        number, frame = self._state.latest_frame()
        if frame is not None and number != self._message[0]:
            try:
                self._message = (number, frame_message(number, frame))
            except RecordError:
                self._message = (number, None)
        return self._message

    def _frame_came(self) -> None:
        """By the runner's thread."""
        if self._watchers and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the server has just ended
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for watcher in self._watchers:
            watcher.news.set()
