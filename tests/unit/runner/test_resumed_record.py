# SPDX-License-Identifier: MIT
"""A record that another user could change does not even choose the machine that a resumed run connects to."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

import rtgauge
from rtgauge.errors import InputError
from rtgauge.runner import measure_run as runner
from rtgauge.runner.measure_run import RunOptions, resume_run
from tests.support.records import Shape, write_record

if TYPE_CHECKING:
    from pathlib import Path


class ContactedError(Exception):
    """A machine was contacted."""


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An unfinished record. To contact its machine raises ContactedError."""

    def contact(*_: object) -> None:
        raise ContactedError

    monkeypatch.setattr(runner, "TargetOpener", contact)
    folder = write_record(tmp_path, Shape(seconds=2, loads=("idle",), cpus=(0,), verdict=None))
    run = json.loads((folder / "run.json").read_text())
    run |= {"state": "partial", "rtgauge": rtgauge.__version__}
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "SHA256SUMS").unlink(missing_ok=True)
    return folder.rename(folder.with_name(f"{folder.name}.partial"))


def resume(folder: Path) -> None:
    options = RunOptions(out=folder.parent, command=["rtgauge"])
    resume_run(folder, options, cast("Any", SimpleNamespace(waits=print)), cast("Any", None))


def test_ones_own_record_is_resumed(record: Path) -> None:
    with pytest.raises(ContactedError):
        resume(record)


@pytest.mark.parametrize("name", ["", "steps"])
def test_a_world_writable_record_is_refused_before_contact(record: Path, name: str) -> None:
    (record / name).chmod(0o777)
    with pytest.raises(InputError, match="cannot be resumed"):
        resume(record)


@pytest.mark.root
@pytest.mark.parametrize("name", ["", "steps"])
def test_another_users_record_is_refused_before_contact(record: Path, name: str) -> None:
    os.chown(record / name, 65534, 65534)
    with pytest.raises(InputError, match="belongs to another user"):
        resume(record)
