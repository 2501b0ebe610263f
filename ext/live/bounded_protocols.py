# SPDX-License-Identifier: MIT
"""Limits the connections, time and memory that a client can use in the page's process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    import asyncio

    import h11

MOST_CONNECTIONS = 80
"""Enough for two WebSockets for each of 32 browsers, and some pages."""
MOST_HEADER_BYTES = 16 << 10
MOST_MESSAGE_BYTES = 1 << 10
"""A browser sends only answers of a few bytes to frames."""
MOST_QUEUED = 64
"""The most messages that wait to be read. A page answers each frame, and at most four are under way."""
MOST_UNSENT_BYTES = 4 << 20
ACCEPTED_AT_ONCE = 8
"""The most connections that wait in the kernel. This many are accepted before the first can be refused."""


class Connections:
    """Counts the HTTP and WebSocket connections together.

    `request_s`: the time within which a connection must become a WebSocket or end.
    """

    def __init__(self, request_s: float) -> None:
        self.count = 0
        self.request_s = request_s

    def protocols(self) -> tuple[type[H11Protocol], type[WebSocketsSansIOProtocol]]:
        """Return protocols of HTTP and WebSocket that count their connections here."""
        connections = self

        class Http(H11Protocol):
            """Closes a connection above the limit at once, and one without a request after `request_s`."""

            _end: asyncio.TimerHandle | None = None

            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                connections.count += 1
                super().connection_made(transport)
                if connections.count > MOST_CONNECTIONS:
                    transport.abort()
                else:
                    self._end = self.loop.call_later(connections.request_s, transport.abort)

            def connection_lost(self, exc: Exception | None) -> None:
                connections.count -= 1
                self._stop()
                super().connection_lost(exc)

            def handle_websocket_upgrade(self, event: h11.Request) -> None:
                self._stop()
                super().handle_websocket_upgrade(event)

            def _stop(self) -> None:
                if self._end is not None:
                    self._end.cancel()
                    self._end = None

        class Socket(WebSocketsSansIOProtocol):
            """A WebSocket, which counts as the HTTP connection from which it was made."""

            def connection_lost(self, exc: Exception | None) -> None:
                connections.count -= 1
                super().connection_lost(exc)

            def data_received(self, data: bytes) -> None:
                # One read may hold tens of thousands of messages, each of which becomes an object. Pings are
                # answered even if nobody reads the answers.
                for at in range(0, len(data), MOST_MESSAGE_BYTES):
                    if self.transport.is_closing():
                        return
                    super().data_received(data[at : at + MOST_MESSAGE_BYTES])
                    if (
                        self.queue.qsize() > MOST_QUEUED
                        or self.transport.get_write_buffer_size() > MOST_UNSENT_BYTES
                    ):
                        self.transport.abort()
                        return

        return Http, Socket


def bounds(request_s: float) -> dict[str, Any]:
    """Return options for uvicorn that set the limits. A connection that is not a WebSocket is closed after
    `request_s`.
    """
    http, socket = Connections(request_s).protocols()
    return {
        "http": http,
        "ws": socket,
        "ws_max_size": MOST_MESSAGE_BYTES,
        "ws_per_message_deflate": False,
        "h11_max_incomplete_event_size": MOST_HEADER_BYTES,
        "backlog": ACCEPTED_AT_ONCE,
    }
