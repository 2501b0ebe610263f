# SPDX-License-Identifier: MIT
"""A target that sends without end is left, before this machine's memory is full."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from rtgauge.errors import MeasureError, RecordError
from rtgauge.record.stream import MOST_LINES, MarkLine, StreamResult
from rtgauge.target.address import SshAddress
from rtgauge.target.lease import LeaseKeeper
from rtgauge.target.ssh_connection import Channel, SshConnection
from rtgauge.target.ssh_errors import ConnectionBroken
from rtgauge.target.ssh_guarded import ATTACHED, SshGuarded


class Here(SshConnection):
    """Runs what is for the target on this machine."""

    def command(self, *, ask: bool) -> list[str]:
        return ["/bin/sh", "-c"]


@pytest.fixture
def connection() -> Iterator[SshConnection]:
    here = Here(SshAddress(host="board", user=None, port=None))
    yield here
    here.close()


def test_what_is_sent_arrives(connection):
    data = bytes(range(256)) * 40_000
    answer = connection.run("cat; echo more >&2; exit 3", (), data)
    assert (answer.status, answer.stdout, answer.stderr) == (3, data, "more\n")


@pytest.mark.parametrize("script", ["exec cat /dev/zero", "exec yes"])
def test_an_answer_without_end(connection, script):
    with pytest.raises(MeasureError, match="more than 64 MiB"):
        connection.run(script)


def test_a_target_that_says_nothing(connection):
    with pytest.raises(ConnectionBroken, match="does not answer"):
        connection.run("exec sleep 1000", timeout_s=0.5)


@pytest.mark.parametrize("script", ["head -c 200000000 /dev/zero >&2", "yes | head -c 200000000 >&2"])
def test_errors_without_end(connection, script):
    answer = connection.run(script)
    assert answer.status == 0
    assert len(answer.stderr) <= 1 << 20


def test_a_greeting_without_end(connection):
    channel = Channel(connection, "true", (), subprocess.PIPE)
    channel.mark = "never said"
    assert not channel.skip_to_mark()
    channel.kill()
    command = [sys.executable, "-c", "import sys\nwhile True: sys.stdout.write('x' * 65536)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        channel.process = process
        assert not channel.skip_to_mark()
        process.kill()


def test_a_line_without_end(connection):
    body = f"echo 1; echo '{ATTACHED.decode().strip()}'; exec cat /dev/zero"
    channel = connection.channel(body)
    keeper = LeaseKeeper()
    program = SshGuarded(connection, "engine", channel, "/tmp/none", keeper=keeper, log=None)
    with pytest.raises(MeasureError, match="a line of more than"):
        list(program.lines())
    channel.kill()
    keeper.close()


def test_a_stream_of_marks_without_end():
    result = StreamResult()
    line = MarkLine(type="mark", name="x", severity="note", detail="")
    result._lines = MOST_LINES - 1
    result.take(line)
    with pytest.raises(RecordError, match="none of this engine"):
        result.take(line)
