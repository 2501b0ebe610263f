# SPDX-License-Identifier: MIT
"""Runs the process that serves the live page: the page, and WebSockets for documents and frames.

The process that measures starts this process, and sends it documents and frames through a socket. Requests
cost time and memory only here. This process has the lowest priority, ends with its parent, and sends the
parent only the numbers of connected browsers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
import struct
import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from rtgauge_ext.live.live_server import COUNTS, DOCUMENT, FRAME, HEAD, LAST

MOST_BROWSERS = 32
MOST_CONNECTIONS = 80
"""Enough for two WebSockets for each of 32 browsers, and some pages."""
MOST_MESSAGE_BYTES = 1 << 10
"""A browser sends only answers of a few bytes to frames."""
MOST_QUEUED = 64
"""The most messages that wait to be read. A page answers each frame, and at most four are under way."""
MOST_UNSENT_BYTES = 4 << 20
ACCEPTED_AT_ONCE = 8
"""The most connections that wait in the kernel. This many are accepted before the first can be refused."""
MOST_UNREAD = 4
"""The most frames that a browser may leave unanswered. A slow browser gets fewer frames, but no late frames.
"""
PAGE_HEAD, VIEWS = "<!-- head -->", "<!-- views -->"
"""The places of the head that all pages have, and of the views' scripts, in the template."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src data:; script-src 'unsafe-inline'; style-src "
    "'unsafe-inline'; "
    "connect-src 'self'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class BoundedConnection(ServerConnection):
    """Closes a connection above the limit, and one whose client sends much or reads nothing."""

    count: ClassVar[int] = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection."""
        BoundedConnection.count += 1
        super().connection_made(transport)
        if BoundedConnection.count > MOST_CONNECTIONS:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection no longer."""
        BoundedConnection.count -= 1
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read the data in small parts. A connection whose messages fill the queue stops reading."""
        # One read may hold tens of thousands of messages, each of which becomes an object. Pings are answered
        # even if nobody reads the answers.
        for at in range(0, len(data), MOST_MESSAGE_BYTES):
            super().data_received(data[at : at + MOST_MESSAGE_BYTES])
            if self.transport.is_closing():
                return
            if not self.transport.is_reading() or (
                self.transport.get_write_buffer_size() > MOST_UNSENT_BYTES
            ):
                self.transport.abort()
                return


@dataclass(eq=False)
class _Browser:
    """A browser that gets documents or frames."""

    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by a new document, a new frame, or the browser's answer."""
    unread: int = 0
    """The number of frames that the browser has not answered."""


class PageServer:
    """Answers requests, and sends the document and the frame that it has.

    On loopback, a request must have this machine's Host. On other addresses, it must have the token.

    `given`: the first message of the parent. `parent`: gets the numbers of browsers at each change.
    """

    def __init__(self, given: dict[str, Any], parent: asyncio.StreamWriter) -> None:
        self._host: str = given["host"]
        self._token: str | None = given["token"]
        scripts = "\n".join(f"<script>\n{view}</script>" for view in given["views"])
        head = (Path(__file__).parent / "templates" / "head.html").read_text(encoding="utf-8")
        page = Path(given["template"]).read_text(encoding="utf-8")
        self._page = page.replace(PAGE_HEAD, head).replace(VIEWS, scripts)
        self._parent = parent
        self._followers: set[_Browser] = set()
        self._watchers: set[_Browser] = set()
        self._document = ""
        self._frame: bytes | None = None
        self.ended = False
        """Whether the last document has come."""
        self._gone = asyncio.Event()

    async def listen(self, parent: asyncio.StreamReader) -> None:
        """Receive from the parent until its last document or its end."""
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while not self.ended:
                kind, content = await received(parent)
                if kind == FRAME:
                    self._frame = content
                elif kind in {DOCUMENT, LAST}:
                    self._document, self.ended = content.decode(), kind == LAST
                for browser in self._watchers if kind == FRAME else self._followers:
                    browser.news.set()

    async def all_have_the_end(self) -> None:
        """Wait until every browser has the last document."""
        while self._followers:
            self._gone.clear()
            await self._gone.wait()

    def report_counts(self) -> None:
        """Send the parent the numbers of browsers that get documents and frames."""
        self._parent.write(struct.pack(COUNTS, len(self._followers), len(self._watchers)))

    @contextlib.contextmanager
    def _among(self, browsers: set[_Browser]) -> Generator[_Browser]:
        """Add a browser to `browsers` while the context is open, or until its connection is closed."""
        browser = _Browser()
        browsers.add(browser)
        self.report_counts()
        try:
            with contextlib.suppress(ConnectionClosed):
                yield browser
        finally:
            browsers.remove(browser)
            if not self._followers:
                self._document = ""  # the document would be old for the next browser
            self._gone.set()
            self.report_counts()

    def _allowed(self, request: Request) -> bool:
        if self._token is None:
            host = request.headers.get("Host", "").rsplit(":", 1)[0].strip("[]")
            return host in {"localhost", "127.0.0.1", "::1", self._host}
        (token,) = parse_qs(urlsplit(request.path).query).get("token", [""])[:1]
        return secrets.compare_digest(token.encode(), self._token.encode())

    def answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Return the page or a refusal; None if the connection becomes a WebSocket."""
        path = urlsplit(request.path).path
        browsers = {"/live": self._followers, "/frames": self._watchers}.get(path)
        origin, host = request.headers.get("Origin"), request.headers.get("Host", "")
        if not self._allowed(request):
            text = "open the address with the token that rtgauge printed"
            response = connection.respond(HTTPStatus.FORBIDDEN, text)
        elif path == "/":
            response = connection.respond(HTTPStatus.OK, self._page)
            del response.headers["Content-Type"]
            response.headers["Content-Type"] = "text/html; charset=utf-8"
        elif browsers is None:
            response = connection.respond(HTTPStatus.NOT_FOUND, "the page is at /")
        elif (origin is not None and origin.split("://")[-1] != host) or len(browsers) >= MOST_BROWSERS:
            response = connection.respond(HTTPStatus.FORBIDDEN, "open the page itself, in fewer browsers")
        else:
            return None
        response.headers.update(HEADERS)
        return response

    async def serve_browser(self, connection: ServerConnection) -> None:
        """Send documents or frames to a browser until it or the run ends."""
        if connection.request is not None and urlsplit(connection.request.path).path == "/live":
            await self._follow(connection)
        else:
            await self._watch(connection)

    async def _follow(self, connection: ServerConnection) -> None:
        with self._among(self._followers) as browser:
            last = ""
            while True:
                ended, document = self.ended, self._document
                if document != last:
                    await connection.send(document)
                    last = document
                if ended:
                    break
                await browser.news.wait()
                browser.news.clear()

    async def _watch(self, connection: ServerConnection) -> None:
        with self._among(self._watchers) as browser:
            sender = asyncio.create_task(self._send_frames(connection, browser))
            try:
                async for _ in connection:
                    browser.unread = max(browser.unread - 1, 0)
                    browser.news.set()
            finally:
                sender.cancel()

    async def _send_frames(self, connection: ServerConnection, browser: _Browser) -> None:
        """Send the newest frame each time. The numbers show the browser which frames were dropped."""
        sent = self._frame
        with contextlib.suppress(ConnectionClosed):
            while True:
                await browser.news.wait()
                browser.news.clear()
                frame = self._frame
                if frame is not None and frame is not sent and browser.unread < MOST_UNREAD:
                    await connection.send(frame)
                    sent = frame
                    browser.unread += 1


async def received(parent: asyncio.StreamReader) -> tuple[int, bytes]:
    """Return the kind and the content of the parent's next message. Raises IncompleteReadError at its end."""
    kind, length = struct.unpack(HEAD, await parent.readexactly(struct.calcsize(HEAD)))
    return kind, await parent.readexactly(length)


async def _serve(listening: socket.socket, parent_socket: socket.socket) -> None:
    parent, writer = await asyncio.open_connection(sock=parent_socket)
    given: dict[str, Any] = json.loads((await received(parent))[1])
    page = PageServer(given, writer)
    async with serve(
        page.serve_browser,
        sock=listening,
        backlog=ACCEPTED_AT_ONCE,
        process_request=page.answer,
        create_connection=BoundedConnection,
        open_timeout=given["request_s"],
        close_timeout=given["last_word_s"],
        compression=None,
        max_size=MOST_MESSAGE_BYTES,
        max_queue=MOST_QUEUED,
        server_header=None,
    ):
        page.report_counts()
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        await page.listen(parent)
        if page.ended:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(page.all_have_the_end(), given["last_word_s"])


def main() -> None:
    """Serve on the first of the command line's descriptors. The second is the socket to the parent."""
    listening, parent_socket = (socket.socket(fileno=int(word)) for word in sys.argv[1:3])
    asyncio.run(_serve(listening, parent_socket))


if __name__ == "__main__":
    main()
