# SPDX-License-Identifier: MIT
"""Runs the engine as a process and reads its stream; every line is checked against
docs/formats/stream.schema.json.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from rtgauge.record.histogram import decode
from tests.support.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "formats" / "stream.schema.json").read_text())
KINDS = {
    name: Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})
    for name in SCHEMA["$defs"]
}
MAPPING = {kind: ref.rpartition("/")[2] for kind, ref in SCHEMA["discriminator"]["mapping"].items()}
tgkill = ctypes.CDLL(None).tgkill
"""To one thread: the kernel picks any thread for a signal to the process, now and then a measuring one."""


def can_be_real_time() -> bool:
    """Whether this process may have FIFO 98."""
    before, param = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(98))
    except PermissionError:
        return False
    os.sched_setscheduler(0, before, param)
    return True


REAL_TIME = can_be_real_time()
POLICY = "fifo" if REAL_TIME else "other"
FIFO = pytest.param("fifo", marks=pytest.mark.real_time)
"""The policy as a parameter of tests, which are skipped if real-time policies are not permitted."""
CPUS = sorted(os.sched_getaffinity(0))


def check_line(text: str) -> dict[str, Any]:
    """A line as it must be: of the schema, with no key that the schema does not know, if it knows all."""
    line = json.loads(text)
    kind = MAPPING[line["type"]]
    errors = [f"{error.json_path}: {error.message}" for error in KINDS[kind].iter_errors(line)]
    assert not errors, (errors, text[:500])
    known = SCHEMA["$defs"][kind]
    unknown = set(line) - set(known["properties"])
    assert not unknown or known.get("additionalProperties") is True, (unknown, text[:500])
    if kind == "Window":
        line |= {name: pairs(line[name]) for name in ("bins", "missed_bins")}
    return line


def pairs(text: str) -> list[tuple[int, int]]:
    """The bins of a window with their counts."""
    values, _ = decode([text])
    return list(zip(np.cumsum(values[0::2]).tolist(), values[1::2].tolist(), strict=True))


class Stream:
    """What one run of the engine said, and its exit status."""

    def __init__(self, text: str, status: int | None = None) -> None:
        self.text = text
        self.status = status
        self.lines = [check_line(line) for line in text.splitlines()]

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["type"] == kind]

    def one(self, kind: str) -> dict[str, Any]:
        lines = self.all(kind)
        assert len(lines) == 1, (kind, self.text[-2000:])
        return lines[0]

    def windows(self, series: int, phase: str = "measure") -> list[dict[str, Any]]:
        return [line for line in self.all("window") if line["series"] == series and line["phase"] == phase]

    @property
    def reason(self) -> str:
        assert self.lines[-1]["type"] == "end", self.text[-2000:]
        return self.lines[-1]["reason"]

    @property
    def marks(self) -> list[str]:
        return [mark["name"] for mark in self.all("mark")]


def run(engine: Path, *words: str, prefix: Sequence[str] = (), **options: Any) -> Stream:
    """The whole stream of one call. Nothing may be said on standard error."""
    completed = subprocess.run(
        [*prefix, str(engine), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        **options,
    )
    assert completed.stderr == "", completed.stderr
    return Stream(completed.stdout, completed.returncode)


def wakeup(engine: Path, *words: str, policy: str = POLICY, **options: Any) -> Stream:
    """`wakeup` that begins at once, with a short warm-up unless the words say otherwise."""
    return run(engine, "wakeup", "--go", f"--policy={policy}", "--warm-up-ns=50000000", *words, **options)


def refused(engine: Path, code: str, status: int, *words: str, **options: Any) -> str:
    """The message of a call that must fail with this code."""
    return str(refusal(engine, code, status, *words, **options)["message"])


def refusal(engine: Path, code: str, status: int, *words: str, **options: Any) -> dict[str, Any]:
    """The error of a call that must fail with this code: one line, the last, the only one about it."""
    stream = run(engine, *words, **options)
    error = stream.one("error")
    assert stream.lines[-1] is error
    assert (error["code"], error["status"], stream.status) == (code, status, status), error
    assert "\n" not in error["message"]
    assert not stream.all("end")
    return error


def children(pid: int) -> list[int]:
    """The processes that this one has begun."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Live:
    """An engine that is talked to while it runs. A context: it is killed if a test leaves it behind."""

    def __init__(self, engine: Path, *words: str, **options: Any) -> None:
        self.process = subprocess.Popen(
            [str(engine), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, **options
        )
        self.text = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()

    def send(self, text: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(text.encode())

    def _more(self, timeout_s: float) -> bool:
        assert self.process.stdout
        if not select.select([self.process.stdout], [], [], timeout_s)[0]:
            return False
        data = self.process.stdout.read(65536)
        self.text += data
        return bool(data)

    def read_until(self, kind: str) -> None:
        """Until a whole line of this kind has come."""
        end = time.monotonic() + PATIENCE_S
        while not any(f'{{"type":"{kind}",'.encode() in line for line in self.text.split(b"\n")[:-1]):
            assert self._more(end - time.monotonic()), (kind, self.text[-2000:])

    def read_more(self) -> None:
        """Something that comes."""
        assert self._more(PATIENCE_S), self.text[-2000:]

    def quiet_for(self, seconds: float) -> bool:
        return not self._more(seconds)

    def finish(self, *, without_empty_lines: bool = False) -> Stream:
        """The rest, up to the engine's end."""
        end = time.monotonic() + PATIENCE_S
        while self._more(end - time.monotonic()):
            pass
        text = re.sub(rb"\n+", b"\n", self.text) if without_empty_lines else self.text
        return Stream(text.decode(), self.process.wait(max(0.1, end - time.monotonic())))

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def storm(self, times: int) -> None:
        """Signals to the process and to every one of its threads, so many times, or until it ends."""
        folder = Path(f"/proc/{self.process.pid}/task")
        for _ in range(times):
            if self.process.poll() is not None:
                return
            for number in (signal.SIGUSR1, signal.SIGWINCH, signal.SIGCONT):
                self.signal(number)
            for thread in sorted(folder.iterdir()) if folder.exists() else []:
                tgkill(self.process.pid, int(thread.name), signal.SIGUSR1)
            time.sleep(0.005)


def measured(engine: Path, probe: str, *words: str, policy: str = POLICY, **options: Any) -> Stream:
    """Measure with a probe of single operations, after a warm-up of 20 ms."""
    return run(engine, probe, "--go", f"--policy={policy}", "--warm-up-ns=20000000", *words, **options)


def adds_up(stream: Stream) -> None:
    """Windows and summaries of each series tell the same, and nothing is missed."""
    for summary in stream.all("summary"):
        windows = stream.windows(summary["series"])
        assert sum(window["count"] for window in windows) == summary["count"]
        assert sum(number for window in windows for _, number in window["bins"]) == summary["count"]
        assert sum(window["sum_ns"] for window in windows) == summary["sum_ns"]
        assert (summary["missed"], summary["impossible"]) == (0, 0)
        if summary["count"]:
            assert min(window["min_ns"] for window in windows if window["count"]) == summary["min_ns"]
            assert max(window["max_ns"] for window in windows if window["count"]) == summary["max_ns"]


def duration_adds_up(engine: Path, probe: str, metric: str, policy: str) -> None:
    stream = measured(engine, probe, "--duration-ns=300000000", policy=policy)
    assert (stream.reason, stream.status) == ("duration", 0)
    assert {line["metric"] for line in stream.all("series")} == {metric}
    adds_up(stream)
    starts = {line["series"]: line["start_ns"] for line in stream.all("started")}
    for series, start_ns in starts.items():
        windows = stream.windows(series)
        assert windows[0]["start_ns"] == start_ns + 20_000_000
        assert windows[-1]["end_ns"] - windows[0]["start_ns"] == 300_000_000
    assert stream.one("hello")["clock"]["cost_count"] > 0


def stop_ends_in_order(engine: Path, probe: str) -> None:
    with Live(engine, probe, f"--policy={POLICY}", "--warm-up-ns=0") as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("window")
        live.send("stop\n")
        stream = live.finish()
    assert (stream.reason, stream.status) == ("stopped", 0)
    adds_up(stream)


def shell_runs_meanwhile(engine: Path, *words: str) -> None:
    """On every CPU that may be used: what a shell starts must run, however the probe keeps the CPUs busy."""
    with Live(engine, *words, "--priority=99") as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("started")
        finished = 0
        end = time.monotonic() + 1.2
        while time.monotonic() < end:
            subprocess.run([sys.executable, "-S", "-c", ""], check=True, timeout=PATIENCE_S)
            finished += 1
        stream = live.finish()
    assert finished >= 2
    assert stream.status == 0
    assert "watchdog" not in stream.marks
