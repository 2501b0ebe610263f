# SPDX-License-Identifier: MIT
"""The page of the files that users write is made from the models that read them."""

from __future__ import annotations

import re

from tools import reference

from rtgauge.extension import registered


def test_the_page_has_every_key_and_its_meaning() -> None:
    page = reference.files_page()
    rows = re.findall(r"^\| `([\w-]+)` \| [^|]* \| (.{6,}) \|$", page, re.MULTILINE)
    assert len(rows) == page.count("\n| `")


def test_it_has_the_files_of_extensions() -> None:
    page = reference.files_page()
    assert [title for title in registered("files") if f"\n## {title}\n" not in page] == []
