# SPDX-License-Identifier: MIT
"""A step that is being measured, as another process needs it to pick the step up."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rtgauge.load.load_state import KeptLoad
from rtgauge.record.model import StepKey
from rtgauge.target.target import FolderName, ProgramPlace


class StepState(TypedDict):
    """Of a step on a target that outlives this process: its key as JSON, when it was started, the target's
    files before it, and the names of the folders
    of its programs and files there."""

    key: str
    started: str
    before: dict[str, Any]
    program: ProgramPlace
    files: FolderName | None
    load: KeptLoad | None


STEP_STATE = TypeAdapter(StepState)


def read_step_state(written: object) -> StepState | None:
    """The state that a record holds; None where nothing can be picked up from it."""
    try:
        state = STEP_STATE.validate_python(written, strict=True)
        StepKey.model_validate_json(state["key"])
    except ValidationError:
        return None
    return state


def program_folders(state: StepState | None) -> list[str]:
    """The names of the folders of a step's programs on the target."""
    if state is None:
        return []
    return [
        state["program"]["name"],
        *(part["kept"]["name"] for part in (state["load"]["parts"] if state["load"] is not None else [])),
    ]
