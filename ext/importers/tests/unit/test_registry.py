# SPDX-License-Identifier: MIT
"""Which format a file has does not depend on the order of extensions, and each cross-check has its measurer."""

from __future__ import annotations

from pathlib import Path

import pytest

from ext.importers.tests.foreign_files import FILES
from rtgauge.extension import registered
from rtgauge.plan.plan_keys import CROSS_CHECK_TOOLS
from rtgauge_ext.importers.foreign_file import head
from rtgauge_ext.importers.registry import by_name, importers


@pytest.mark.parametrize("name", FILES)
def test_one_format_of_a_rank_recognises_a_file(name: str, tmp_path: Path) -> None:
    """Any order of the formats that name themselves, and then of the others, finds the same format."""
    path = tmp_path / name
    content = FILES[name]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    start = head(path)
    recognised = [importer for importer in importers() if importer.recognises(start)]
    first = [importer.name for importer in recognised if importer.by_shape == recognised[0].by_shape]
    assert first == [name.partition(".")[0].partition("+")[0]]


def test_formats_that_name_themselves_are_tried_first() -> None:
    shapes = [importer.by_shape for importer in importers()]
    assert shapes == sorted(shapes)
    assert set(shapes) == {False, True}


def test_every_importer_has_the_name_that_the_extension_gives() -> None:
    assert list(by_name()) == sorted(registered("importers"))


def test_every_cross_check_has_a_measurer() -> None:
    assert set(CROSS_CHECK_TOOLS) <= set(registered("measurers"))
