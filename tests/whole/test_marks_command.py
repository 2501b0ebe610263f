# SPDX-License-Identifier: MIT
"""`rtgauge marks` says what a mark means, and what to do."""

from __future__ import annotations

import re

import pytest
from tools import reference

from rtgauge.cli.marks_command import marks
from rtgauge.errors import InputError
from rtgauge.record.marks import mark_kinds


def test_every_mark_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    marks()
    names = re.findall(r"^([\w-]+) \((?:note|doubtful|invalid)", capsys.readouterr().out, re.MULTILINE)
    assert names == sorted(mark_kinds())


def test_one_mark_has_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    marks(["cpu-offline"])
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("cpu-offline (invalid): ")
    assert second == f"    {mark_kinds()['cpu-offline'].value.remedy}"


def test_a_mark_of_another_name_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'cpu-offline'"):
        marks(["cpu-offlin"])


def test_the_page_of_commands_has_every_command_and_its_options() -> None:
    text = reference.commands_page()
    for heading in ("rtgauge run", "rtgauge probe wakeup", "rtgauge marks"):
        assert f"\n## {heading}\n" in text
    assert "--interval TIME" in text
