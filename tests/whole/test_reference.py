# SPDX-License-Identifier: MIT
"""The page of the files that users write is made from the models that read them."""

from __future__ import annotations

import re

from tools import reference

from rtgauge.extension import registered
from rtgauge.system.rules import CHECK_KEYS, RULE_KEYS


def test_the_page_has_every_key_and_its_meaning() -> None:
    page = reference.files_page()
    rows = re.findall(r"^\| `([\w-]+)` \| [^|]* \| (.{6,}) \|$", page, re.MULTILINE)
    assert len(rows) == page.count("\n| `")
    assert {*RULE_KEYS, *CHECK_KEYS} <= {key for key, _ in rows}


def test_defaults_and_choices_are_shown() -> None:
    page = reference.files_page()
    choices = r"^\| `if-missing` \| unknown \| .+ One of unknown, ok, differs, not-applicable\. \|$"
    assert re.search(choices, page, re.MULTILINE)
    assert "| `title` | required |" in page


def test_it_has_the_files_of_extensions() -> None:
    page = reference.files_page()
    assert [title for title in registered("files") if f"\n## {title}\n" not in page] == []
