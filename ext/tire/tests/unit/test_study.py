# SPDX-License-Identifier: MIT
"""What the studies plan, refuse, and ask for next."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ext.tire.tests.synthetic import Machine
from ext.tire.tests.tire_records import write_study
from rtgauge.errors import InputError
from rtgauge.plan.make_plan import Overrides
from rtgauge.probe import probe_registry as probes
from rtgauge.record.facts import Facts
from rtgauge.record.reader import Record
from rtgauge.study import study_registry
from rtgauge_ext.tire.analysis.aims import GARRE2014, Aims, aims_of, aims_of_study
from rtgauge_ext.tire.analysis.searches import most_nodes
from rtgauge_ext.tire.garre2014 import STUDY
from rtgauge_ext.tire.tire_study import STUDY as SEARCH
from rtgauge_ext.tire.tire_study import keys_of, plan_of, tire_entry

if TYPE_CHECKING:
    from pathlib import Path


def overrides(repeats: int | None = None, **parameters: Any) -> Overrides:
    return Overrides(parameters=parameters, repeats=repeats)


def test_it_is_known_by_name() -> None:
    assert {"garre2014", "tire-search"} <= set(study_registry.studies())
    assert study_registry.adaptive_study("garre2014", overrides()).plan().name == "garre2014"


def test_the_first_steps_are_all_that_is_known_without_measuring() -> None:
    plan = STUDY.begin(overrides())
    tire = [key.parameters for key in plan.steps if key.probe == "tire"]
    assert {p.threads for p in tire} == {"1", "cores", "hardware-threads", "twice"}
    assert {p.solver for p in tire} == {"serial", "semaphore", "halo"}
    assert {p.policy for p in tire} == {"fifo", "other"}
    assert {p.without for p in tire} == {"none", "springs", "integration"}
    assert {key.probe for key in plan.steps} == {"tire", "switch"}
    assert len({key.model_dump_json() for key in plan.steps}) == len(plan.steps)


def test_no_later_step_is_longer_than_the_first_ones(tmp_path: Path) -> None:
    """The leases of other machines rest on it."""
    for study, words in (
        (STUDY, {"duration": "3s"}),
        (SEARCH, {"duration": "1995ms", "period": "7ms"}),
        (STUDY, {"duration": "500ms", "policy": "other"}),
    ):
        begun = study.begin(overrides(**words))
        longest = max(
            probes.get(key.probe).expected_ns(probes.get(key.probe).own(key)) or 0 for key in begun.steps
        )
        record = Record.open(write_study(tmp_path / str(words), Machine(), study=None, searched=False))
        record.run.planned[:] = begun.steps
        observed = 0
        for _ in range(3):
            more = study.next_steps(record, overrides(**words))
            record.run.planned.extend(more)
            observed += len(more)
            assert all(
                (probes.get(key.probe).expected_ns(probes.get(key.probe).own(key)) or 0) <= longest
                for key in more
            )
        assert observed > 10


def test_the_next_steps_depend_on_the_record_alone(tmp_path: Path) -> None:
    record = Record.open(write_study(tmp_path, Machine(), searched=False))
    item = [key.model_dump_json() for key in STUDY.next_steps(record, overrides(repeats=2))]
    assert item == [key.model_dump_json() for key in STUDY.next_steps(record, overrides(repeats=2))]
    assert len(set(item)) == len(item)


def test_searches_begin_below_the_predicted_frontier(tmp_path: Path) -> None:
    machine = Machine(noise=0.0)
    record = Record.open(write_study(tmp_path, machine, searched=False))
    record.run.planned[:] = STUDY._several_threads(
        record, "local", overrides(repeats=2), aims_of_study(GARRE2014, overrides(repeats=2))
    )
    more = STUDY.next_steps(record, overrides(repeats=2))
    paced = [key.parameters for key in more if key.parameters.get("period_ns") == 10_000_000]
    for solver, threads in (("semaphore", 1), ("semaphore", 4), ("halo", 2)):
        sizes = [p.nodes for p in paced if (p.solver, p.threads, p.policy) == (solver, str(threads), "fifo")]
        steps = [machine.step_ns(solver, nodes, threads) / 10e6 for nodes in sizes]
        assert min(steps) < 0.95
        assert any(0.85 < step < 0.95 for step in steps), "the start of the search"
        assert (max(steps) > 1.5) == (solver == "semaphore"), "the map goes beyond the frontier"


def test_a_search_stays_within_half_of_the_memory(tmp_path: Path) -> None:
    record = Record.open(write_study(tmp_path, Machine(), searched=False))
    assert most_nodes(record, record.steps, "halo") == pytest.approx(
        2 * 2**30 / 200, rel=1e-6
    )  # 200 bytes a node, 4 GiB
    unknown = replace(record, systems={"local": Facts()})
    assert most_nodes(unknown, record.steps, "halo") == 16_000_000


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ({"solver": "halp"}, "did you mean 'halo'"),
        ({"solver": "halo,"}, "separated by commas"),
        ({"threads": "0"}, "numbers from 1"),
        ({"threads": "core"}, "give numbers"),
        ({"nodes": "4,x"}, "give numbers"),
        ({"duration": "5"}, "has no unit"),
        ({"duration": "0s"}, "more than 0"),
        ({"duration": "5ms"}, "shorter than its period"),
        ({"policy": "deadline"}, "unknown policy"),
        ({"nodes": "402"}, "multiple of 4"),
        ({"stiffnes": 3}, "stiffnes"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(words: dict[str, Any], reported: str) -> None:
    with pytest.raises(InputError, match=reported):
        STUDY.begin(overrides(**words))


def test_one_load_and_one_deployment() -> None:
    with pytest.raises(InputError, match="under a single load"):
        STUDY.begin(Overrides(loads=["idle", "cpu"]))
    with pytest.raises(InputError, match="under a single deployment"):
        STUDY.begin(Overrides(deployments=["M", "MI"]))
    plan = STUDY.begin(Overrides(loads=["cpu"], deployments=["M"]))
    assert {(key.load, key.deployment) for key in plan.steps} == {("cpu", "M")}


def test_a_search_finds_nodes_by_itself() -> None:
    with pytest.raises(InputError, match="leave nodes out"):
        SEARCH.begin(overrides(nodes="400"))


def test_parameters_of_the_probe_go_to_every_step() -> None:
    aims = aims_of(overrides(cpu="0", height=1), Aims(), "a test")
    keys = plan_of("a-test", [tire_entry(aims, "halo", 400, 1, "fifo")], overrides(), aims).steps
    assert (keys[0].parameters.get("cpu"), keys[0].parameters.get("height_m")) == ("0", 1.0)


def test_each_target_has_its_own_steps(tmp_path: Path) -> None:
    record = Record.open(write_study(tmp_path, Machine(), searched=False))
    aims = Aims()
    (key,) = keys_of(
        "a-test", [tire_entry(aims, "halo", 400, 1, "fifo")], overrides(), aims, record, "ssh://board"
    )
    assert key.targets == {"self": "ssh://board"}


@pytest.mark.parametrize("name", ["garre2014", "tire-search"])
def test_the_duration_of_a_search_is_not_estimated(name: str) -> None:
    study = study_registry.adaptive_study(name, Overrides())
    assert study.later_s(study.plan().steps) is None
