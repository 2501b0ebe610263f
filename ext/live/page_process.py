# SPDX-License-Identifier: MIT
"""Runs the process that serves the live page.

The process that measures starts this process, and sends it documents and frames through a socket. Requests
cost time and memory only here. This process has the lowest priority, ends with its parent, and sends the
parent only the numbers of connected browsers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
import sys
from pathlib import Path
from typing import Any

import uvicorn

from rtgauge_ext.live.application import LiveApplication
from rtgauge_ext.live.bounded_protocols import bounds
from rtgauge_ext.live.page_messages import COUNTS, DOCUMENT, FRAME, HEAD, LAST


async def _listen(parent: asyncio.StreamReader, application: LiveApplication) -> None:
    """Receive from the parent until its last document or its end."""
    with contextlib.suppress(asyncio.IncompleteReadError, OSError):
        while not application.ended:
            kind, length = struct.unpack(HEAD, await parent.readexactly(struct.calcsize(HEAD)))
            content = await parent.readexactly(length)
            if kind == FRAME:
                application.set_frame(content)
            elif kind in {DOCUMENT, LAST}:
                application.set_document(content, ended=kind == LAST)


async def _serve(listening: socket.socket, parent_socket: socket.socket) -> None:
    parent, writer = await asyncio.open_connection(sock=parent_socket)
    _, length = struct.unpack(HEAD, await parent.readexactly(struct.calcsize(HEAD)))
    given: dict[str, Any] = json.loads(await parent.readexactly(length))

    def report_counts(browsers: int, watchers: int) -> None:
        writer.write(struct.pack(COUNTS, browsers, watchers))

    page = Path(given["template"]).read_text(encoding="utf-8")
    application = LiveApplication(given["host"], given["token"], page, given["views"], report_counts)
    options = bounds(given["request_s"])
    config = uvicorn.Config(
        application.routes,
        log_level="critical",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=given["last_word_s"],
        **options,
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.005)
    report_counts(0, 0)
    _lowest_priority()
    await _listen(parent, application)
    if application.ended:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(application.all_have_the_end(), given["last_word_s"])
    server.should_exit = True
    await serving


def _lowest_priority() -> None:
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main() -> None:
    """Serve on the first of the command line's descriptors. The second is the socket to the parent."""
    listening, parent_socket = (socket.socket(fileno=int(word)) for word in sys.argv[1:3])
    asyncio.run(_serve(listening, parent_socket))


if __name__ == "__main__":
    main()
