# SPDX-License-Identifier: MIT
"""What a co-kernel lacks of a plan; the engine's refusal is played by a program before the ordinary
engine.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.support.cli import error_line, good, invoke
from tests.support.messages import missing

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.real_time
REFUSAL = (
    '{"type":"error","code":"runtime","message":"response does not run on Cobalt",'
    '"detail":{"what":"response","remedy":"leave --rt out"},"status":2}'
)
PLAN = """
name = "both"
[defaults]
rt = "cobalt"
duration = "200ms"
[[step]]
probe = "switch"
[[step]]
probe = "response"
"""


@pytest.fixture
def env(engine: Path, tmp_path: Path) -> dict[str, str]:
    """An engine that has no response."""
    program = tmp_path / "engine"
    program.write_text(
        f'#!/bin/sh\ncase " $* " in *" response "*) echo \'{REFUSAL}\'; exit 2;; esac\nexec '
        f"'{engine}' \"$@\"\n"
    )
    program.chmod(0o755)
    return {"RTGAUGE_ENGINE_COBALT": str(program)}


def test_the_rest_of_the_plan_is_measured(env: dict[str, str], tmp_path: Path) -> None:
    plan = tmp_path / "both.toml"
    plan.write_text(PLAN)
    document = json.loads(good(invoke("run", plan, "--json", "--out", tmp_path / "runs", env=env)).stdout)
    assert [step["key"]["probe"] for step in document["steps"]] == ["switch"]
    assert [(missing["what"], missing["reason"]) for missing in document["run"]["left_out"]] == [
        ("response", "response does not run on Cobalt")
    ]


def test_a_probe_alone_is_refused(env: dict[str, str]) -> None:
    completed = invoke("probe", "response", "--rt", "cobalt", env=env)
    assert not missing(error_line(completed, 2), "response", "Cobalt", "leave --rt out")
