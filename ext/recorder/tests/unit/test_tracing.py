# SPDX-License-Identifier: MIT
"""What recorders leave in tracefs, in a folder as tracefs has it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rtgauge_ext.recorder import tracing
from rtgauge_ext.recorder.tracing import PREFIX, make_instance, remove_instance, remove_leftovers

ENDED = 1 << 30  # no process has such a number


@pytest.fixture(name="root")
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("instances", "events"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tracing, "INSTANCES", (tmp_path / "instances",))
    return tmp_path


@pytest.fixture(name="group")
def _group(root: Path) -> Callable[[str], str]:
    def make(instance: str) -> str:
        name = instance.replace("-", "_")
        (root / "events" / name).mkdir()
        return name

    return make


def test_an_instance_goes_with_its_events(root: Path, group: Callable[[str], str]) -> None:
    name = make_instance("1-explain")
    events = group(name)
    assert remove_instance(name)
    assert not list((root / "instances").iterdir())
    assert (root / "dynamic_events").read_text() == f"-:{events}/\n"


def test_an_instance_without_events_writes_nothing(root: Path) -> None:
    assert remove_instance(make_instance("1"))
    assert not (root / "dynamic_events").exists()


def test_what_killed_recorders_left_goes(root: Path, group: Callable[[str], str]) -> None:
    instances = root / "instances"
    alive = make_instance("1")
    older = f"{PREFIX}{os.getpid()}-7"  # by a version that did not write the start into the name
    reused = f"{PREFIX}{os.getpid()}-t0-1"
    left = [f"{PREFIX}{ENDED}-1", f"{PREFIX}{ENDED}-t5-1-explain", reused]
    for name in [*left, older, "of-somebody-else"]:
        (instances / name).mkdir()
    gone = group(f"{PREFIX}{ENDED}-t5-2-explain")
    group(f"{alive}-explain")
    group("sched")
    assert remove_leftovers([alive, f"{alive}-explain"]) == len(left)
    assert {place.name for place in instances.iterdir()} == {alive, older, "of-somebody-else"}
    assert (root / "dynamic_events").read_text() == f"-:{gone}/\n"


def test_an_instance_that_somebody_used_goes_later(root: Path, group: Callable[[str], str]) -> None:
    """The kernel refuses to remove it (EBUSY), as a folder that is not empty."""
    busy, used = make_instance("1"), make_instance("2")
    (root / "instances" / busy / "used").mkdir()
    events = group(busy)
    assert not remove_instance(busy)
    assert remove_leftovers([used]) == 0
    (root / "instances" / busy / "used").rmdir()
    assert remove_leftovers([used]) == 1
    assert [place.name for place in (root / "instances").iterdir()] == [used]
    assert f"-:{events}/\n" in (root / "dynamic_events").read_text()
