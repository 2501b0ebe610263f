# SPDX-License-Identifier: MIT
"""The loads of Brown & Martin (2010): what they start, and that they run on this machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.local_target import LocalTarget
from tests.support.running_loads import measured_until, nothing_left

from rtgauge.errors import InputError, MeasureError
from rtgauge.load import load_registry
from rtgauge.load.lifecycle import RunningLoad
from rtgauge.load.load import LoadContext
from rtgauge.load.processes import STAT_GLOB, descendants, parse_all
from rtgauge.target.local import read_local

if TYPE_CHECKING:
    from collections.abc import Iterator

GIB = 1 << 30


def context() -> LoadContext:
    return LoadContext(LocalTarget(hidden=["unshare"]), 4, 16 * GIB, 15 * GIB, bound_s=100)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    with nothing_left(tmp_path) as file:
        yield file


def test_copy_uses_ssh_where_it_is() -> None:
    (part,) = load_registry.get("copy").parts(context())
    assert (part.program, part.wanted["by"], part.notes) == ("scp", "scp over the loopback", ())
    bare = LoadContext(LocalTarget(hidden=["scp"]), 4, GIB, GIB, bound_s=100)
    (part,) = load_registry.get("copy").parts(bare)
    assert (part.program, part.wanted["by"]) == ("dd", "dd")
    assert "is not installed" in part.notes[0]


def test_some_loads_take_a_word() -> None:
    (part,) = load_registry.get("swarm").parts(context())
    assert part.ready == ("dd", 500)
    (part,) = load_registry.get("swarm:7").parts(context())
    assert part.ready == ("dd", 7)
    (part,) = load_registry.get("read:/proc/self/exe").parts(context())
    assert part.wanted == {"source": "/proc/self/exe"}


@pytest.mark.parametrize(
    ("name", "reported"),
    [("swarm:0", "1 to 5000"), ("swarm:x", "1 to 5000"), ("swarm:99999", "1 to 5000"), ("swarm:", "swarm:N"),
     ("read:x", "whole path"), ("read:", "DEVICE or FILE"),
     ("read:/a\nb", "whole path"), ("swam:3", "did you mean 'swarm'")],
)  # fmt: skip
def test_words_that_a_load_does_not_take(name: str, reported: str) -> None:
    with pytest.raises(InputError, match=reported):
        load_registry.get(name)


def test_read_needs_something_that_can_be_read() -> None:
    with pytest.raises(InputError, match="say what to read"):
        load_registry.get("read").parts(context())
    with pytest.raises(MeasureError, match="cannot be read"):
        load_registry.get("read:/nowhere/at/all").parts(context())


def test_read_opens_no_character_device_and_no_pipe(tmp_path: Path) -> None:
    """To open /dev/watchdog starts a countdown to a reboot, and a pipe waits for a writer."""
    opened = tmp_path / "opened"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen(["sh", "-c", 'exec 3>"$1"; : >"$2"', "sh", pipe, opened])
    try:
        for source in (pipe, Path("/dev/zero"), tmp_path):
            with pytest.raises(MeasureError, match="block device"):
                load_registry.get(f"read:{source}").parts(context())
        assert writer.poll() is None, "nobody opened the pipe"
        assert not opened.exists()
    finally:
        writer.kill()
        writer.wait()


@pytest.mark.load
@pytest.mark.parametrize("hidden", [[], ["sshd", "/usr/sbin/sshd"]], ids=["scp", "dd"])
def test_copy_copies_and_leaves_nothing(
    log: Path, hidden: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    report = measured_until(load_registry.get("copy"), log, LocalTarget(hidden=hidden), "copies")
    assert report.parts[0].reached["bytes"] == report.parts[0].reached["copies"] << 25
    assert report.parts[0].ended_early is None
    killed = list(
        tmp_path.glob("rtgauge-copy*")
    )  # on a busy machine it may not end within its time: then the next one removes what it left
    left = tmp_path / "rtgauge-copy.4194305.abc"  # of a process that never was
    left.mkdir()
    measured_until(load_registry.get("copy"), log, LocalTarget(hidden=hidden), "copies")
    assert not any(folder.exists() for folder in (left, *killed))


@pytest.mark.load
def test_read_reads_again_and_again(log: Path, tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(bytes(3 << 20))
    report = measured_until(load_registry.get(f"read:{file}"), log, LocalTarget(), "rounds")
    assert report.parts[0].reached["bytes"] == report.parts[0].reached["rounds"] * (3 << 20)


@pytest.mark.load
def test_swarm_has_all_its_processes(log: Path) -> None:
    with RunningLoad.start(LocalTarget(), load_registry.get("swarm:25"), log, expected_s=5) as load:
        load.wait_warm(0.1)
        mine = descendants(parse_all(read_local([STAT_GLOB])), os.getpid())
        report = load.stop()
    assert [process.name for process in mine].count("dd") == 25
    assert report.parts[0].ended_early is None
