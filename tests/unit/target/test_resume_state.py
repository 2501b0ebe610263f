# SPDX-License-Identifier: MIT
"""What a record says of a session on another machine is taken only where it is whole."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.runner.context import program_folders, read_step_state
from rtgauge.target import ssh_folder
from rtgauge.target.ssh_connection import CommandOutput
from rtgauge.target.ssh_folder import find_again
from rtgauge.target.ssh_target import SshSession, session_name
from tests.unit.records import step

SESSION = {"run_id": "r", "boot_id": "b", "lease_ns": 10}
NAME = "rtgauge-0123456789abcdef"
PLACE = {"name": "program-00000001"}
PART = {
    "kept": {"name": "program-00000002"},
    "argv": ["a"],
    "wanted": {},
    "notes": [],
    "pids": [1],
    "cpu_ticks_begin": None,
}
KEPT = {
    "key": step([1])[0].key.model_dump_json(),
    "started": "2026-11-21T10:00:00Z",
    "before": {"/proc/stat": {"text": "x"}},
    "program": PLACE,
    "files": None,
    "load": {"started_ns": 1, "warm_ns": 2, "begin_ns": 3, "parts": [PART]},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


def test_whole_ones_are_taken() -> None:
    assert session_name({"name": NAME}) == NAME
    session = SshSession.from_json(json.dumps(SESSION).encode())
    assert session is not None
    assert session.lease_ns == 10
    kept = read_step_state(json.loads(json.dumps(KEPT)))
    assert kept == KEPT
    assert program_folders(kept) == ["program-00000001", "program-00000002"]
    assert program_folders(None) == []


@pytest.mark.parametrize("name", SESSION)
@given(value=JSON)
def test_a_session_with_a_wrong_part_is_none(name: str, value: Any) -> None:
    actual = SshSession.from_json(json.dumps({**SESSION, name: value}).encode())
    assert actual is None or type(value) is type(SESSION[name])
    assert (
        SshSession.from_json(
            json.dumps({key: value for key, value in SESSION.items() if key != name}).encode()
        )
        is None
    )


@given(JSON)
def test_anything_else_is_none(actual: Any) -> None:
    assert SshSession.from_json(json.dumps(actual).encode()) is None
    assert session_name(actual) is None
    assert read_step_state(actual) is None


@pytest.mark.parametrize("name", KEPT)
@given(value=JSON)
def test_a_step_with_a_wrong_part_is_none(name: str, value: Any) -> None:
    kept = read_step_state({**KEPT, name: value})
    assert (
        kept is None
        or (name == "started" and isinstance(value, str))
        or (name == "files" and value is None)
        or (name == "before" and isinstance(value, dict))
        or name == "load"
    )


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "..",
        "/tmp/rtgauge-0123456789abcdef",
        "rtgauge-0123456789abcdef/../../x",
        "rtgauge-$(touch x)",
        f"{NAME}\n",
        NAME.upper(),
        NAME[:-1],
    ],
)
def test_a_session_is_named_by_nothing_else(name: str) -> None:
    assert session_name({"name": name}) is None


@pytest.mark.parametrize(
    "place",
    ["/bin", "..", "program-1", "program-00000001/..", "program-00000001\n", "engine", "", "files-0000000g"],
)
def test_a_step_whose_programs_or_files_are_elsewhere_is_none(place: str) -> None:
    """What is fetched from the folder of files is removed there."""
    assert read_step_state({**KEPT, "program": {"name": place}}) is None
    assert read_step_state({**KEPT, "files": place}) is None
    assert (
        read_step_state({**KEPT, "load": {**KEPT["load"], "parts": [{**PART, "kept": {"name": place}}]}})
        is None
    )


class Board:
    """Runs the scripts for a target here, with `tmp` as its temporary folder."""

    def __init__(self, tmp: Path) -> None:
        self.tmp = tmp
        self.address = type("Address", (), {"name": "ssh://board"})

    def run(
        self, body: str, words: Any = (), send: Any = b"", timeout_s: float | None = None
    ) -> CommandOutput:
        """Like SshConnection.run."""
        environment = {**os.environ, "TMPDIR": str(self.tmp), "HOME": str(self.tmp / "home")}
        given = {"input": send} if isinstance(send, bytes) else {"stdin": send}
        completed = subprocess.run(
            ["/bin/sh", "-c", body, "mark", *words],
            capture_output=True,
            env=environment,
            check=False,
            timeout=timeout_s,
            **given,
        )
        return CommandOutput(completed.returncode, completed.stdout, completed.stderr.decode())


def an_engine(path: Path, proof: Path) -> None:
    path.write_text(f"#!/bin/sh\necho run >{proof}\n")
    path.chmod(0o700)


def test_a_sessions_folder_is_found_and_its_engine_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever lies there is not run."""
    ours, proof = tmp_path / "ours", tmp_path / "proof"
    ours.write_bytes(b"our engine")
    monkeypatch.setattr(ssh_folder, "engine_for", lambda _: ours)
    board: Any = Board(tmp_path)
    assert find_again(board, NAME) is None
    folder = tmp_path / NAME
    folder.mkdir(mode=0o700)
    an_engine(folder / "engine", proof)
    here = find_again(board, NAME)
    assert here is not None
    assert here.folder == str(folder)
    assert here.name == NAME
    assert (folder / "engine").read_bytes() == b"our engine"
    assert os.access(here.engine, os.X_OK)
    assert not proof.exists()


@pytest.mark.parametrize("wrong", ["link", "mode", "file"])
def test_a_folder_that_others_could_have_made_is_no_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    ours, real = tmp_path / "ours", tmp_path / "real"
    ours.write_bytes(b"our engine")
    monkeypatch.setattr(ssh_folder, "engine_for", lambda _: ours)
    real.mkdir(mode=0o700)
    an_engine(real / "engine", tmp_path / "proof")
    before = (real / "engine").read_bytes()
    folder = tmp_path / NAME
    match wrong:
        case "link":
            folder.symlink_to(real)
        case "mode":
            real.rename(folder)
            folder.chmod(0o755)
            real = folder
        case _:
            folder.write_text("")
    board: Any = Board(tmp_path)
    assert find_again(board, NAME) is None
    assert (real / "engine").read_bytes() == before


@pytest.mark.root
def test_another_users_folder_is_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, folder = tmp_path / "ours", tmp_path / NAME
    ours.write_bytes(b"our engine")
    monkeypatch.setattr(ssh_folder, "engine_for", lambda _: ours)
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    board: Any = Board(tmp_path)
    assert find_again(board, NAME) is None
    assert list(folder.iterdir()) == []
