# SPDX-License-Identifier: MIT
"""A step that is being measured on a target that outlives this process: what another process needs to go on with it."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rtgauge.load.load_state import KeptLoad
from rtgauge.target.target import ProgramPlace


class Kept(TypedDict):
    """The step (its key as JSON), when it was started, what the target said before it, and where its programs are."""

    key: str
    started: str
    before: dict[str, Any]
    program: ProgramPlace
    files: str | None
    load: KeptLoad | None


KEPT = TypeAdapter(Kept)


def read_kept(found: object) -> Kept | None:
    """What a record says; None where it is nothing that could be gone on with."""
    try:
        return KEPT.validate_python(found, strict=True)
    except ValidationError:
        return None


def kept_folders(kept: Kept | None) -> list[str]:
    """The folders of its programs on the target."""
    if kept is None:
        return []
    return [kept["program"]["folder"], *(part["kept"]["folder"] for part in (kept["load"]["parts"] if kept["load"] is not None else []))]
