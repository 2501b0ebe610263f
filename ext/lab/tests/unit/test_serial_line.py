# SPDX-License-Identifier: MIT
"""How ssh's client and the server of a guest with only serial lines find each other.

The guest's end is a thread that does what `serve-line` does.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge_ext.lab.serial_line import BEGIN, GO, HELLO, READY, synchronise

if TYPE_CHECKING:
    from collections.abc import Callable

BANNER = b"SSH-2.0-server\r\n"


def guest(line: socket.socket, before: bytes, ignored: int) -> None:
    """Send what an earlier server left, do not hear the first words, then answer as `serve-line` does and
    send a server's first line.

    Where words were not heard, they are answered late, so that the client has sent more than one.
    """
    unheard: list[bytes] = []
    line.sendall(before)
    with line.makefile("rb") as lines:
        for text in lines:
            greeting, _, word = text.strip().partition(b" ")
            if greeting.endswith(HELLO.encode()):
                unheard.append(word)
            if greeting.endswith(HELLO.encode()) and len(unheard) > ignored:
                line.sendall(b"".join(f"{READY} {word.decode()}\n".encode() for word in unheard))
                unheard.clear()
            if greeting.endswith(GO.encode()):
                line.sendall(f"{BEGIN} {word.decode()}\n".encode() + BANNER)
                return


def in_thread(function: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


@given(before=st.binary(max_size=300))
def test_old_bytes_on_the_line_are_skipped(before: bytes) -> None:
    _find(before, 0)


def test_a_word_that_an_earlier_server_took_is_sent_again() -> None:
    _find(b"", 2)


def _find(before: bytes, ignored: int) -> None:
    here, there = socket.socketpair()
    with here, there:
        server = in_thread(guest, there, before, ignored)
        synchronise(here)
        assert here.recv(len(BANNER), socket.MSG_WAITALL) == BANNER
        server.join()


def test_a_guest_that_has_ended_or_says_nothing() -> None:
    here, there = socket.socketpair()
    with here:
        there.close()
        with pytest.raises(OSError, match=r"ended|Broken pipe"):
            synchronise(here)
    here, there = socket.socketpair()
    with here, there, pytest.raises(TimeoutError, match="no answer"):
        synchronise(here, 0.1)


def test_ssh_is_given_the_connection_itself() -> None:
    ssh, ours = socket.socketpair()
    with ssh, ours, socket.create_server(("127.0.0.1", 0)) as listener:
        command = [sys.executable, "-P", "-m", "rtgauge_ext.lab.serial_line", str(listener.getsockname()[1])]
        with subprocess.Popen(command, stdin=ours.fileno(), stdout=ours.fileno()) as client:
            line, _ = listener.accept()
            with line:
                server = in_thread(guest, line, b"", 0)
                _, descriptors, _, _ = socket.recv_fds(ssh, 1, 1)
                assert client.wait() == 0
                with socket.socket(fileno=descriptors[0]) as given_connection:
                    assert given_connection.recv(len(BANNER), socket.MSG_WAITALL) == BANNER
                server.join()
