# SPDX-License-Identifier: MIT
"""A latency monitor for tests: speaks latmon's protocol byte by byte to one client, from a script of
latencies.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def _bulk(latencies_ns: Sequence[int], period_us: int) -> bytes:
    total = sum(latencies_ns)
    overruns = sum(max(0, -(-(latency // 1000) // period_us) - 1) for latency in latencies_ns)
    return struct.pack(
        ">IIIIII",
        total >> 32,
        total & 0xFFFFFFFF,
        min(latencies_ns),
        max(latencies_ns),
        overruns,
        len(latencies_ns),
    )


@contextlib.contextmanager
def latmon(
    seconds: Sequence[Sequence[int]], *, piece: int = 1 << 20, raw: bytes | None = None
) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yields its address, and the requests that came.

    Each of `seconds` is a bulk of latencies in ns; the last one is sent after the stop.

    `piece`: bytes a send, so that numbers come in parts; `raw`: these bytes and a closed connection in place
    of all that.
    """
    requests: list[tuple[int, int]] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def send(data: bytes) -> None:
                for at in range(0, len(data), piece):
                    connection.sendall(data[at : at + piece])

            def request() -> tuple[int, int] | None:
                data = b""
                while len(data) < 8 and (part := connection.recv(8 - len(data))):
                    data += part
                return struct.unpack(">II", data) if len(data) == 8 else None

            with contextlib.suppress(OSError):
                first = request()
                assert first is not None
                requests.append(first)
                if raw is not None:
                    send(raw)
                    return
                period_us, cells = first
                for latencies in seconds[:-1]:
                    send(_bulk(latencies, period_us))
                second = request()
                if second is None:
                    return
                requests.append(second)
                counts = [0] * cells
                for latencies in seconds:
                    for latency in latencies:
                        if cells:
                            counts[min(latency // 1000, cells - 1)] += 1
                # What was under way, the empty bulk (of a monitor whose minimum was reset), the cells.
                send(
                    _bulk(seconds[-1], period_us)
                    + struct.pack(">IIIIII", 0, 0, 0xFFFFFFFF, 0, 0, 0)
                    + struct.pack(f">{cells}I", *counts)
                )

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"latmon:127.0.0.1:{listener.getsockname()[1]}", requests
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # where nobody came
        thread.join()
    finally:
        listener.close()
