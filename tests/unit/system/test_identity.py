# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.record.facts import Identity
from rtgauge.system.collect_facts import facts
from rtgauge.system.hardware import IDENTITY_PATHS, SOURCES, identity, is_serial
from rtgauge.target.file_batch import Files

UUID = "4c4c4544-0051-3510-8052-b4c04f4a3232"
MACHINE_ID = "3d1219c7c4c5404aaa1f6d2a48adfda4"


def identity_of(**texts: str) -> dict[str, str]:
    return identity(
        Files({SOURCES[name.replace("_", "-")]: {"text": f"{text}\n"} for name, text in texts.items()})
    )


def test_the_board_comes_before_the_image() -> None:
    assert identity_of(dmi=UUID, machine_id=MACHINE_ID).source == "dmi"
    assert identity_of(device_tree="10000000a3b1c2d4", machine_id=MACHINE_ID).source == "device-tree"
    assert identity_of(machine_id=MACHINE_ID).source == "machine-id"
    assert identity_of() == Identity(source=None, hash=None)


def test_the_number_is_kept_only_as_a_stable_hash() -> None:
    assert identity_of(dmi=UUID.upper()) == identity_of(dmi=UUID)
    assert identity_of(dmi=UUID).hash == "32ff7c5fb743410eafc9315dc755c251"
    assert identity_of(dmi=UUID).hash != identity_of(device_tree=UUID).hash


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Not Settable",
        "To be filled by O.E.M.",
        "00000000-0000-0000-0000-000000000000",
        "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        "03000200-0400-0500-0006-000700080009",
        "0",
        "uninitialized",
    ],
)
def test_a_number_that_many_machines_have_is_none(text: str) -> None:
    assert not is_serial(text)
    assert identity_of(dmi=text, machine_id=MACHINE_ID).source == "machine-id"


def test_the_facts_have_it() -> None:
    assert facts(Files()).as_json()["identity"] == {"source": "unknown", "hash": "unknown"}


@given(
    st.dictionaries(st.sampled_from(IDENTITY_PATHS), st.dictionaries(st.text(), st.text() | st.integers()))
)
def test_no_content_makes_it_fail(files: dict[str, Any]) -> None:
    assert identity(Files(files)).model_fields_set == {"source", "hash"}
