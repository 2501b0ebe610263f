# SPDX-License-Identifier: MIT
"""A target that sends without end is left, before this machine's memory is full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from types import SimpleNamespace

import pytest

from rtgauge.errors import MeasureError, RecordError
from rtgauge.record.stream import MOST_LINES, MarkLine, StreamResult
from rtgauge.target import guard, log_bound, ssh_guarded, ssh_target
from rtgauge.target.address import SshAddress
from rtgauge.target.file_batch import Files
from rtgauge.target.guard import GuardWatch, LeaseKeeper, guard_gone, wait_until_held
from rtgauge.target.ssh_connection import Channel, SshConnection
from rtgauge.target.ssh_errors import ConnectionBroken
from rtgauge.target.ssh_folder import InstalledEngine
from rtgauge.target.ssh_guarded import ATTACHED, SshGuarded
from rtgauge.target.ssh_target import SshTarget, read_files


class Here(SshConnection):
    """Runs what is for the target on this machine."""

    def command(self, *, interactive: bool) -> list[str]:
        return ["/bin/sh", "-c"]


@pytest.fixture
def connection() -> Iterator[SshConnection]:
    here = Here(SshAddress(host="board", user=None, port=None))
    yield here
    here.close()


class Dropbear(Here):
    """Ends if a command line is too long, as Dropbear does."""

    def command(self, *, interactive: bool) -> list[str]:
        return ["/bin/sh", "-c", '[ ${#1} -le 9000 ] && exec /bin/sh -c "$1"', "sh"]


@pytest.mark.parametrize("length", [100, 7_000, 100_000])
def test_words_may_be_longer_than_a_command_line_of_the_target(length):
    connection = Dropbear(SshAddress(host="board", user=None, port=None))
    words = ["a\nb ' $x\n", "é" * length, ""]
    script = """printf '%s\\0' "$@"; exec cat"""
    try:
        answer = connection.run(script, words, b"more\n")
        channel = connection.channel(script, words)
        assert channel.skip_to_mark()
        reported = channel.line(100)
        channel.process.stdin.write(b"later\n")
        channel.process.stdin.close()
        reported += channel.read_all()
        ended = channel.finish()
    finally:
        connection.close()
    arrived = "".join(f"{word}\0" for word in words).encode()
    assert (answer.status, answer.stdout) == (0, arrived + b"more\n")
    assert (ended.status, reported) == (0, arrived + b"later\n")


def test_what_is_sent_arrives(connection):
    data = bytes(range(256)) * 40_000
    answer = connection.run("cat; echo more >&2; exit 3", (), data)
    assert (answer.status, answer.stdout, answer.stderr) == (3, data, "more\n")


@pytest.mark.parametrize("script", ["exec cat /dev/zero", "exec yes"])
def test_an_answer_without_end(connection, script):
    with pytest.raises(MeasureError, match="more than 64 MiB"):
        connection.run(script)


def test_a_target_that_says_nothing(connection):
    with pytest.raises(ConnectionBroken, match="did not answer"):
        connection.run("exec sleep 100", timeout_s=0.5)


@pytest.mark.parametrize("script", ["head -c 200000000 /dev/zero >&2", "yes | head -c 200000000 >&2"])
def test_errors_without_end(connection, script):
    answer = connection.run(script)
    assert answer.status == 0
    assert len(answer.stderr) <= 1 << 20


def test_a_greeting_without_end(connection):
    channel = Channel(connection, "true", ())
    channel.mark = "never said"
    assert not channel.skip_to_mark()
    channel.kill()
    command = [sys.executable, "-c", "import sys\nwhile True: sys.stdout.write('x' * 65536)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        channel.process = process
        assert not channel.skip_to_mark()
        process.kill()


def test_a_greeting_that_never_comes(connection):
    channel = connection.channel("exec sleep 100")
    channel.mark = "never said"
    with pytest.raises(ConnectionBroken, match="board did not answer"):
        channel.skip_to_mark(0.2)
    assert channel.process.returncode is not None


def test_errors_without_end_fill_no_disk(connection, monkeypatch, tmp_path):
    """They went to a file in the folder for temporary files: 6 GB in 12 s."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    channel = connection.channel("yes >&2 & echo begun; wait")
    assert channel.skip_to_mark()
    assert channel.line(100) == b"begun\n"
    descriptors = Path("/proc/self/fd")
    files = [
        target
        for entry in descriptors.iterdir()
        if (target := os.path.realpath(entry)).startswith(str(tmp_path))
    ]
    channel.process.terminate()
    channel.kill()
    assert files == []
    assert list(tmp_path.iterdir()) == []


def test_a_connection_that_others_share_is_not_waited_for(connection):
    """Whoever keeps standard error open: the command has ended."""
    answer = connection.run("sleep 100 >/dev/null & echo $!; echo word >&2; exit 4")
    os.kill(int(answer.stdout), signal.SIGKILL)
    assert (answer.status, answer.stderr) == (4, "word\n")


def follow(connection, body):
    """A program of a session, and what ends it."""
    channel = connection.channel(f"echo 1; echo '{ATTACHED.decode().strip()}'; {body}")
    keeper = LeaseKeeper()
    return SshGuarded(connection, "engine", channel, "/tmp/none", keeper=keeper, log=None), lambda: (
        channel.kill(),
        keeper.close(),
    )


def test_a_program_falls_silent_as_its_guard_is_gone(connection, monkeypatch):
    def check():
        raise guard_gone(10_000_000_000, "ssh://board")

    monkeypatch.setattr(guard, "STOP_S", 0.0)
    program, end = follow(connection, "echo first; exec sleep 100")
    program.watch = GuardWatch(check, lambda: program.send("stop"))
    lines = program.lines()
    assert next(lines) == b"first\n"
    with pytest.raises(MeasureError, match=r"guard .* rtgauge restore --target ssh://board"):
        next(lines)
    end()


def test_a_program_that_falls_silent(connection, monkeypatch):
    monkeypatch.setattr(ssh_guarded, "PROBE_AFTER_S", 0.05)
    program, end = follow(connection, "echo first; exec sleep 100")
    lines = program.lines(0.4)
    assert next(lines) == b"first\n"
    with pytest.raises(ConnectionBroken, match="sent nothing for 0 s"):
        next(lines)
    end()


def test_a_target_that_falls_silent(connection, monkeypatch):
    """It is asked whether it is there long before the time that the program may take."""
    monkeypatch.setattr(ssh_guarded, "PROBE_AFTER_S", 0.05)
    program, end = follow(connection, "exec sleep 100")
    monkeypatch.setattr(
        connection, "run", lambda *_: (_ for _ in ()).throw(ConnectionBroken("board did not answer"))
    )
    with pytest.raises(ConnectionBroken, match="board did not answer"):
        list(program.lines(3600))
    end()


@pytest.mark.parametrize(
    "line",
    ["[]", "1", '"x"', "null", "x", "{", "[" * 1000, '{"type":"error"}', '{"type":1}', '{"type":"guard"'],
)
def test_a_guards_line_that_is_none(line):
    target = SimpleNamespace(restored_before=[])
    with pytest.raises(MeasureError, match=r"^ssh://board: ") as error:
        wait_until_held(lambda _silence_s: iter([line.encode() + b"\n"]), 0, target, None, "ssh://board")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "answer",
    ["[]", "{}", '{"files": []}', '{"time_ns": 1, "files": {"x": 1}}', '{"time_ns": true, "files": {}}'],
)
@pytest.mark.parametrize(
    "more",
    ["", '{"time_ns": 1, "files": {"x": {"text": 1}}}', '{"time_ns": 1, "files": {"x": {"directory": [1]}}}'],
)
def test_an_answer_of_read_that_is_none(connection, answer, more):
    monkey = SimpleNamespace(
        run=lambda *_: SimpleNamespace(stdout=(more or answer).encode(), status=0), address=connection.address
    )
    with pytest.raises(MeasureError, match="command read failed"):
        read_files(monkey, "engine", ["x"])


class WithoutGuard(SshTarget):
    """A target whose guard has ended, and has removed the engine."""

    def __init__(self) -> None:
        self.name, self._lease_ns, self._checking = "ssh://board", 10**10, Lock()
        self._folders = {}
        self._installed = InstalledEngine("/tmp/rtgauge-0", "x86_64")
        self._guard = SimpleNamespace(followed=lambda: False)
        self._connection = SimpleNamespace(
            run=lambda *_: SimpleNamespace(stdout=b"", stderr="not found", status=127),
            address=SimpleNamespace(name=self.name),
        )


@pytest.mark.parametrize(
    "use", [lambda target: target.read(["/proc/uptime"]), lambda target: target.files_folder(Path("out"))]
)
def test_what_fails_because_the_guard_has_ended_says_so(use):
    target = WithoutGuard()
    with pytest.raises(MeasureError, match="guard of this run has ended"):
        use(target)


class Fetching(SshTarget):
    """A target whose files are what `script` prints."""

    def __init__(self, connection, script):
        self.name, self._connection, self._folders = "ssh://board", connection, {}
        self._script = script
        self.read = lambda paths: Files({path: {"directory": ["samples-0.i64"]} for path in paths})


@pytest.mark.parametrize(
    ("script", "error", "expected_text"),
    [
        ("exec cat /dev/zero", MeasureError, "the files are larger"),
        ("exec sleep 100", ConnectionBroken, "did not answer"),
    ],
)
def test_a_file_without_end_is_not_fetched(connection, monkeypatch, tmp_path, script, error, expected_text):
    target = Fetching(connection, script)
    target._folders[tmp_path] = "/nowhere"
    monkeypatch.setattr(ssh_target, "GIVE", script)
    monkeypatch.setattr(ssh_target, "PATIENCE_S", 0.3)
    with pytest.raises(error, match=expected_text):
        target.fetch(tmp_path, 1 << 20)
    assert list(tmp_path.iterdir()) == []


def test_a_log_without_end_is_cut_to_its_last_part(tmp_path, monkeypatch):
    monkeypatch.setattr(log_bound, "MOST_LOG", 100_000)
    monkeypatch.setattr(log_bound, "KEPT_LOG", 1_000)
    with (tmp_path / "log").open("w+b") as log:
        log_bound.append_only(log)
        for number in range(50_000):
            log.write(b"line %d\n" % number)
            if number % 100 == 0:
                log.flush()
                log_bound.bound_log(log)
        log.flush()
    content = (tmp_path / "log").read_bytes()
    assert len(content) <= 101_100
    assert content.startswith(log_bound.LEFT_OUT)
    assert content.endswith(b"line 49998\nline 49999\n")


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
    with pytest.raises(RecordError, match="engine is not the one"):
        result.take(line)
