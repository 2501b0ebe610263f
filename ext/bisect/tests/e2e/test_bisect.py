# SPDX-License-Identifier: MIT
"""`rtgauge bisect` on this machine: a commit makes a hog run longer beside the measured thread."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.support.cli import COMMAND, environment, error_line, good, invoke, rtgauge, wait_until

from rtgauge.record.marks import mark_kinds

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

pytestmark = pytest.mark.real_time

CPU = str(max(os.sched_getaffinity(0)))
HOG = """
import pathlib, sys, time
source = pathlib.Path(sys.argv[1])
print("ready", flush=True)
while True:
    end = time.monotonic() + float(source.read_text() or 0) / 1000
    while time.monotonic() < end:
        pass
    time.sleep(0.005)
"""
ASKED = ("--load", "idle", "--duration", "400ms", "--quantile", "p95")
ANY_MARK = [word for name in mark_kinds() for word in ("--allow-mark", name)]
"""The machine may be busy: the change is so large that it does not matter."""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Eight commits; from the sixth on `busy` is 3 ms instead of 0.2 ms. The third cannot be built."""
    folder = tmp_path / "clone"
    subprocess.run(["git", "init", "--quiet", "-b", "main", folder], check=True)
    who = ["-c", "user.name=A", "-c", "user.email=a@b"]
    for number in range(1, 9):
        (folder / "busy").write_text("0.2" if number < 6 else "3")
        (folder / "build.sh").write_text(f"# {number}\ncp busy ../running\nexit {int(number == 3)}\n")
        subprocess.run(["git", "add", "."], cwd=folder, check=True)
        subprocess.run(["git", *who, "commit", "--quiet", "-m", f"change {number}"], cwd=folder, check=True)
    return folder


@contextmanager
def hog(tmp_path: Path) -> Generator[None]:
    """It runs before the measured thread for as long as the file `running` says."""
    (tmp_path / "running").write_text("0")
    words = ["taskset", "-c", CPU, "chrt", "-f", "99", "python3", "-c", HOG, str(tmp_path / "running")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def words(tmp_path: Path, clone: Path) -> list[str]:
    requested = ["bisect", "--good", "main~7", "--bad", "main", "--repository", str(clone), *ASKED, *ANY_MARK]
    requested += ["--set", f"cpu={CPU}", "--set", "warm-up=0s", "--set", "priority=90", "--wait", "10min"]
    return [*requested, "-o", str(tmp_path / "search"), "--seed", "1", "--", "sh", "build.sh"]


def runs_of(state: Path) -> int:
    return len(json.loads(state.read_text())["runs"]) if state.exists() else 0


@pytest.mark.root
def test_the_commit_is_found_after_a_stop_in_the_middle(tmp_path: Path, clone: Path) -> None:
    with hog(tmp_path):
        state = tmp_path / "search" / "bisect.json"
        with subprocess.Popen([*COMMAND, *words(tmp_path, clone)], env=environment()) as process:
            wait_until(lambda: process.poll() is not None or runs_of(state) >= 2, "two runs")
            process.kill()
        before = runs_of(state)
        assert "a git bisect is under way" in error_line(
            invoke(*words(tmp_path / "other", clone), wait_for_lock=False), 2
        )
        completed = good(rtgauge("resume", tmp_path / "search", "--wait", "10min", "--json"))
    document = json.loads(completed.stdout)
    assert [commit["subject"] for commit in document["first_bad"]] == ["change 6"]
    assert document["runs"] >= before + 10
    head = subprocess.run(["git", "status", "-sb"], cwd=clone, capture_output=True, text=True, check=True)
    assert head.stdout == "## main\n"
    assert "change 6" in good(invoke("resume", tmp_path / "search")).stdout


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"--good": "nowhere"}, "--good nowhere is not a commit"),
        ({"--good": "main", "--bad": "main~3"}, "not an ancestor"),
        ({"--load": "idle,cpu"}, "name the one that decides with --load or --series"),
        ({"--quantile": "p98"}, "is not one of"),
        ({"--repository": "/"}, "not in a Git repository"),
        ({"--": ""}, "give both ends and a command"),
    ],
)
def test_wrong_input(tmp_path: Path, clone: Path, changed: dict[str, str], message: str) -> None:
    requested = words(tmp_path, clone)
    for option, value in changed.items():
        if option == "--":
            del requested[requested.index("--") :]
        else:
            requested[requested.index(option) + 1] = value
    assert message in error_line(invoke(*requested, wait_for_lock=False), 2)
    assert not (tmp_path / "search").exists()


def test_no_search_to_resume(tmp_path: Path) -> None:
    assert "the folder is not a record" in error_line(invoke("resume", tmp_path), 2)
    (tmp_path / "bisect.json").write_text("{}")
    assert "is damaged" in error_line(invoke("resume", tmp_path), 2)
