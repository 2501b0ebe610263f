# SPDX-License-Identifier: MIT
"""Settings of network interfaces (docs/formats/agent.md), on a tap device of our own."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.test_agent import Agent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.engine, pytest.mark.root]
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 2, 0x1000
MOST_FRAMES = "64"
"""More are cut by the kernel's driver (NAPI_POLL_WEIGHT in drivers/net/tun.c)."""


@pytest.fixture
def agent(engine: Path, tmp_path: Path) -> Agent:
    return Agent(engine, tmp_path)


@pytest.fixture
def tap() -> Iterator[tuple[str, Callable[[], None]]]:
    """Its name, and what removes it."""
    try:
        file = os.open("/dev/net/tun", os.O_RDWR)
    except OSError as error:
        pytest.skip(f"this kernel has no tap devices: {error}")
    name = f"rtg{uuid.uuid4().hex[:8]}"
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    left = [file]

    def remove() -> None:
        while left:
            os.close(left.pop())

    yield name, remove
    remove()


def read(agent: Agent, *names: str) -> dict[str, Any]:
    completed = agent.call("read", "--", *names)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)["files"]


def test_frames_of_an_interface_are_set_and_put_back(
    agent: Agent, tap: tuple[str, Callable[[], None]]
) -> None:
    name = f"ethtool:{tap[0]}:rx-frames"
    before = read(agent, name)[name]["text"]
    status, (report,) = agent.set(name, "7")
    assert (status, report["old"], report["now"], report["ok"]) == (0, before, "7", True)
    assert read(agent, "ethtool:*:rx-frames")[name] == {"text": "7"}
    status, report = agent.restore("--run", "r1")
    assert status == 0
    assert report[0]["action"] == "restored"
    assert read(agent, name)[name]["text"] == before


def test_a_driver_reports_values_it_changes_or_lacks(
    agent: Agent, tap: tuple[str, Callable[[], None]]
) -> None:
    frames, eee, wait = (f"ethtool:{tap[0]}:{key}" for key in ("rx-frames", "eee", "rx-usecs"))
    status, report = agent.set(frames, "1000", eee, "off", wait, "100")
    assert status == 3
    assert [each["error"] for each in report] == ["differs", "ENOTSUP", "ENOTSUP"]
    assert report[0]["now"] == MOST_FRAMES
    assert read(agent, "ethtool:*:eee")[eee] == {"error": "ENOTSUP"}
    agent.restore("--run", "r1")


def test_an_interface_that_went_away_leaves_nothing_to_put_back(
    agent: Agent, tap: tuple[str, Callable[[], None]]
) -> None:
    name, remove = tap
    status, _ = agent.set(f"ethtool:{name}:rx-frames", "7")
    assert status == 0
    remove()
    status, report = agent.restore("--run", "r1")
    assert status == 0
    assert report[0]["action"] == "gone"
    assert agent.restore("--run", "r1")[1][-1]["count"] == 0


def test_a_killed_owners_setting_is_put_back(agent: Agent, tap: tuple[str, Callable[[], None]]) -> None:
    name = f"ethtool:{tap[0]}:rx-frames"
    before = read(agent, name)[name]["text"]
    with subprocess.Popen(["sleep", "100"]) as owner:
        assert agent.set(name, "9", options=("--owner-pid", str(owner.pid)))[0] == 0
        owner.kill()
        owner.wait()
    assert agent.restore("--stale")[0] == 0
    assert read(agent, name)[name]["text"] == before
