# SPDX-License-Identifier: MIT
"""What kept settings cost: by the loads' counts, and by RAPL in a tree of files."""

from __future__ import annotations

from tests.unit import records

from rtgauge.record.model import DeploymentReport, LoadPart, LoadReport, Step
from rtgauge.system.step_changes import changes
from rtgauge.target.file_batch import Files
from rtgauge_ext.tune.costs import costs

RAPL = "/sys/class/powercap/intel-rapl"
KEPT = "isolate=1"


def energy_uj(package: int) -> dict[str, dict[str, str]]:
    """A package, and a part of it that is not counted again."""
    return {
        f"{RAPL}:0/energy_uj": {"text": f"{package}\n"},
        f"{RAPL}:0:0/energy_uj": {"text": f"{package // 2}\n"},
    }


def measured(deployment: str, rounds: int, used_uj: int) -> Step:
    step, _ = records.step([20_000], load="scheduler")  # pyright: ignore[reportUnknownMemberType]
    part = LoadPart(program="hackbench", argv=[], reached={"rounds": rounds, "cpu_s": 5.0})
    report = DeploymentReport(name=deployment, words=deployment, isolated="1" if deployment == KEPT else "")
    update = {
        "key": step.key.model_copy(update={"deployment": deployment}),
        "load": LoadReport(name="scheduler", parts=[part]),
        "deployment": report,
        "changes": changes(Files(energy_uj(1_000_000)), Files(energy_uj(1_000_000 + used_uj))),
    }
    return step.model_copy(update=update)


def test_both_sides_are_compared_by_the_best_count_and_by_energy() -> None:
    steps = [measured("as-is", 100, 50_000), measured("as-is", 120, 50_000), measured(KEPT, 88, 60_000)]
    assert costs(steps, KEPT) == [
        "nothing else can use CPU 1",
        "scheduler: rounds of hackbench -20.0 %",
        "scheduler: energy +20.0 %",
    ]


def test_a_counter_that_wrapped_is_not_compared() -> None:
    steps = [measured("as-is", 100, -50_000), measured(KEPT, 100, 60_000)]
    assert costs(steps, KEPT)[1:] == ["scheduler: rounds of hackbench +0.0 %"]
