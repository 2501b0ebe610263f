# SPDX-License-Identifier: MIT
"""Defines the routes of the live page's server: the page, and WebSockets for documents and frames."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

MOST_BROWSERS = 32
MOST_UNREAD = 4
"""The most frames that a browser may leave unanswered. A slow browser gets fewer frames, but no late frames.
"""
VIEWS = "<!-- views -->"
"""The place of the views' scripts in the template."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src data:; script-src 'unsafe-inline'; style-src "
    "'unsafe-inline'; "
    "connect-src 'self'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
CLOSED = (WebSocketDisconnect, RuntimeError)
"""The errors that Starlette raises if the browser has gone."""


@dataclass(eq=False)
class _Browser:
    """A browser that gets documents or frames."""

    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by a new document, a new frame, or the browser's answer."""
    unread: int = 0
    """The number of frames that the browser has not answered."""


class LiveApplication:
    """The routes, with the document and the frame that they serve.

    On loopback, a request must have this machine's Host. On other addresses, it must have the token.

    `page`: its HTML. `views`: the scripts that draw frames. `report_counts`: called at each change with the
    numbers of browsers that get documents and frames.
    """

    def __init__(
        self,
        host: str,
        token: str | None,
        page: str,
        views: list[str],
        report_counts: Callable[[int, int], None],
    ) -> None:
        self._report_counts = report_counts
        self._host = host
        self._token = token
        scripts = "\n".join(f"<script>\n{view}</script>" for view in views)
        self._page = page.replace(VIEWS, scripts)
        self._followers: set[_Browser] = set()
        self._watchers: set[_Browser] = set()
        self._document = ""
        self._frame: bytes | None = None
        self.ended = False
        """Whether the last document has come."""
        self._gone = asyncio.Event()
        self.routes = Starlette(
            routes=[
                Route("/", self._show),
                WebSocketRoute("/live", self._follow),
                WebSocketRoute("/frames", self._watch),
            ]
        )

    def set_document(self, content: bytes, *, ended: bool) -> None:
        """Show a document. `ended`: whether it is the last document."""
        self._document, self.ended = content.decode(), ended
        for browser in self._followers:
            browser.news.set()

    def set_frame(self, content: bytes) -> None:
        """Show a frame."""
        self._frame = content
        for browser in self._watchers:
            browser.news.set()

    async def all_have_the_end(self) -> None:
        """Wait until every browser has the last document."""
        while self._followers:
            self._gone.clear()
            await self._gone.wait()

    @contextlib.contextmanager
    def _among(self, browsers: set[_Browser]) -> Generator[_Browser]:
        """Add a browser to `browsers` while the context is open."""
        browser = _Browser()
        browsers.add(browser)
        self._report_counts(len(self._followers), len(self._watchers))
        try:
            yield browser
        finally:
            browsers.remove(browser)
            if not self._followers:
                self._document = ""  # the document would be old for the next browser
            self._gone.set()
            self._report_counts(len(self._followers), len(self._watchers))

    def _allowed(self, connection: HTTPConnection) -> bool:
        if self._token is None:
            host = connection.headers.get("host", "").rsplit(":", 1)[0].strip("[]")
            return host in {"localhost", "127.0.0.1", "::1", self._host}
        return secrets.compare_digest(connection.query_params.get("token", "").encode(), self._token.encode())

    async def _accept(self, socket: WebSocket, present: int) -> bool:
        """Accept the WebSocket if the browser may see the page, or else close it. Return whether it was
        accepted.
        """
        origin, host = socket.headers.get("origin"), socket.headers.get("host", "")
        if (
            not self._allowed(socket)
            or (origin is not None and origin.split("://")[-1] != host)
            or present >= MOST_BROWSERS
        ):
            await socket.close(1008)
            return False
        await socket.accept()
        return True

    async def _show(self, request: Request) -> Response:
        if not self._allowed(request):
            return PlainTextResponse(
                "open the address with the token that rtgauge printed", status_code=403, headers=HEADERS
            )
        return HTMLResponse(self._page, headers=HEADERS)

    async def _follow(self, socket: WebSocket) -> None:
        if not await self._accept(socket, len(self._followers)):
            return
        with self._among(self._followers) as browser, contextlib.suppress(*CLOSED):
            last = ""
            while True:
                ended, document = self.ended, self._document
                if document != last:
                    await socket.send_text(document)
                    last = document
                if ended:
                    break
                await browser.news.wait()
                browser.news.clear()
            await socket.close(1000)

    async def _watch(self, socket: WebSocket) -> None:
        if not await self._accept(socket, len(self._watchers)):
            return
        with self._among(self._watchers) as browser:
            sender = asyncio.create_task(self._send_frames(socket, browser))
            try:
                with contextlib.suppress(*CLOSED):
                    while True:
                        await socket.receive_text()
                        browser.unread = max(browser.unread - 1, 0)
                        browser.news.set()
            finally:
                sender.cancel()

    async def _send_frames(self, socket: WebSocket, browser: _Browser) -> None:
        """Send the newest frame each time. The numbers show the browser which frames were dropped."""
        sent = self._frame
        with contextlib.suppress(*CLOSED):
            while True:
                await browser.news.wait()
                browser.news.clear()
                frame = self._frame
                if frame is not None and frame is not sent and browser.unread < MOST_UNREAD:
                    await socket.send_bytes(frame)
                    sent = frame
                    browser.unread += 1
