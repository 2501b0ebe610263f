# SPDX-License-Identifier: MIT
"""A journal says which places to release and which folder to remove, so only this user may have written it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

from rtgauge.errors import MeasureError
from rtgauge_ext.labgrid.places import Holder, Places, journal_folder, release_abandoned

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.root
NOBODY = 65534


def silent(_holder: Holder, *_words: str, **_options: object) -> str:
    """Stand in for a coordinator that has no place of this holder."""
    return ""


@pytest.fixture(autouse=True)
def journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of journals, without a coordinator."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(Holder, "client", silent)
    journal_folder().mkdir(parents=True)
    return journal_folder()


@pytest.fixture
def consoles(tmp_path: Path) -> Path:
    """A folder as a killed process left it, with a console whose login is over."""
    folder = tmp_path / "consoles"
    (folder / "0").mkdir(parents=True)
    (folder / "0" / "key").write_text("")
    return folder


def write_journal(journals: Path, folder: Path) -> None:
    holder = Holder("host", "user", None, str(folder))
    (journals / "one.json").write_text(json.dumps(asdict(holder)))


def test_what_a_killed_process_left_is_removed(journals: Path, consoles: Path) -> None:
    write_journal(journals, consoles)
    release_abandoned(journals)
    assert not consoles.exists()


def test_a_folder_of_another_user_is_neither_written_nor_removed(
    journals: Path, consoles: Path, tmp_path: Path
) -> None:
    write_journal(journals, consoles)
    (consoles / "0" / "over").symlink_to(tmp_path / "elsewhere")
    os.chown(consoles, NOBODY, NOBODY)
    release_abandoned(journals)
    assert (consoles / "0" / "key").exists()
    assert not (tmp_path / "elsewhere").exists()


def test_a_journal_of_another_user_is_not_read(journals: Path, consoles: Path) -> None:
    write_journal(journals, consoles)
    os.chown(journals, NOBODY, NOBODY)
    with pytest.raises(MeasureError, match="belongs to another user"):
        Places()
    assert consoles.exists()
