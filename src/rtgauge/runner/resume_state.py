# SPDX-License-Identifier: MIT
"""A step that is being measured: as this process knows it, and as another process needs it to pick the step
up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rtgauge.load.lifecycle import RunningLoad
from rtgauge.load.load_state import KeptLoad
from rtgauge.record.model import StepKey
from rtgauge.target.target import FolderName, Guarded, ProgramPlace


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


@dataclass(frozen=True)
class StepInProgress:
    """A step that was begun, here or by the process that it was picked up from."""

    key: StepKey
    started: str
    """ISO 8601, UTC."""
    files_before: Mapping[str, Any]
    """What the target's files that must not change said before it."""
    load: RunningLoad | None
    picked_up: Guarded | None = None
    """The engine that measures it already."""

    def state(self, program: Guarded, files: str | None) -> StepState | None:
        """For another process, once the engine runs; None where it ends with this one.

        `files`: the folder on the target that the engine writes to.
        """
        if program.kept is None:
            return None
        load = self.load.state() if self.load is not None else None
        name = files.rpartition("/")[2] if files is not None else None
        return StepState(
            key=self.key.model_dump_json(),
            started=self.started,
            before=dict(self.files_before),
            program=program.kept,
            files=name,
            load=load,
        )
