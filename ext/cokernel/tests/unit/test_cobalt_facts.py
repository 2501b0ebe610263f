# SPDX-License-Identifier: MIT
"""Facts of Xenomai's Cobalt, from what a machine with 3.2.7 said and from hostile files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rtgauge.record.facts import UNKNOWN
from rtgauge.target.file_batch import Files
from rtgauge_ext.cokernel import cobalt_facts

CAPTURED = Path(__file__).parents[1] / "data"
SEEN = {
    cobalt_facts.VERSION: "3.2.7\n",
    cobalt_facts.CLOCK: (CAPTURED / "cobalt-coreclk.txt").read_text(),
    cobalt_facts.AFFINITY: "00000003\n",
    cobalt_facts.BUILD: "#2 SMP PREEMPT IRQPIPE Sun Nov 22 13:17:18 UTC 2026\n",
    cobalt_facts.POSSIBLE: "0-1\n",
    f"{cobalt_facts.PARAMETERS}/supported_cpus": "18446744073709551615\n",
    f"{cobalt_facts.PARAMETERS}/allowed_group": "-1\n",
    f"{cobalt_facts.PARAMETERS}/state": "enabled\n",
    f"{cobalt_facts.PARAMETERS}/smi": "detect\n",
}
"""Of Cobalt 3.2.7 on Linux 5.13.19 with Dovetail."""


def facts(texts: dict[str, str]) -> dict[str, Any]:
    """As system.json has them."""
    files = {
        path: {"text": texts[path]} if path in texts else {"error": "ENOENT"}
        for path in cobalt_facts.COBALT_PATHS
    }
    return cobalt_facts.cobalt(Files(files)).model_dump()


def test_a_machine_with_cobalt():
    assert facts(SEEN) == {
        "name": "Xenomai Cobalt",
        "version": "3.2.7",
        "cpus": "0-1",
        "affinity": "0-1",
        "state": "enabled",
        "pipeline": "Dovetail",
        "gravity": {"irq_ns": 0, "kernel_ns": 2000, "user_ns": 2000},
        "timer": "lapic",
        "clock": "<Linux clocksource>",
        "clock_watchdog": "off",
        "allowed_group": "none",
        "smi": "detect",
    }


def test_a_group_a_mask_and_an_older_pipeline():
    machine_facts = facts(
        SEEN
        | {
            f"{cobalt_facts.PARAMETERS}/allowed_group": "1000",
            f"{cobalt_facts.PARAMETERS}/supported_cpus": "2",
            cobalt_facts.AFFINITY: "2",
            cobalt_facts.PIPELINE: "",
        }
    )
    assert (
        machine_facts["allowed_group"],
        machine_facts["cpus"],
        machine_facts["affinity"],
        machine_facts["pipeline"],
    ) == (
        "1000",
        "1",
        "1",
        "I-pipe",
    )


def test_what_cannot_be_read_is_unknown():
    machine_facts = facts({})
    assert set(machine_facts["gravity"].values()) == {UNKNOWN}
    assert {value for name, value in machine_facts.items() if name not in ("name", "gravity")} == {UNKNOWN}


LINES = st.sampled_from(
    [
        *SEEN[cobalt_facts.CLOCK].splitlines(),
        "gravity: irq=9 kernel=",
        "gravity: irq=-1 kernel=2 user=3 4",
        "watchdog: maybe",
        " devices: timer=, clock=",
        "-1",
        "0x3",
    ]
)


@settings(max_examples=200)
@given(
    st.dictionaries(
        st.sampled_from(cobalt_facts.COBALT_PATHS),
        st.one_of(st.text(max_size=200), st.lists(LINES, max_size=8).map("\n".join)),
    )
)
def test_hostile_files(texts: dict[str, str]):
    machine_facts = facts(texts)
    assert machine_facts.keys() == facts(SEEN).keys()
    assert all(isinstance(value, int) or value == UNKNOWN for value in machine_facts["gravity"].values())


AUTOTUNE = (CAPTURED / "cobalt-autotune.txt").read_text()


def test_the_result_of_autotune_is_read():
    assert cobalt_facts.autotuned(AUTOTUNE) == {"irq_ns": 500, "kernel_ns": 5500, "user_ns": 5000}
    assert cobalt_facts.gravity_of(SEEN[cobalt_facts.CLOCK]) == {
        "irq_ns": 0,
        "kernel_ns": 2000,
        "user_ns": 2000,
    }


def test_what_autotune_looks_for_is_what_it_printed_last():
    parts = AUTOTUNE.partition("5500 ns")
    assert cobalt_facts.autotune_looks_for("") is None
    assert cobalt_facts.autotune_looks_for(parts[0]) == "kernel"
    assert cobalt_facts.autotuned(parts[0]) == {"irq_ns": 500}
    assert cobalt_facts.autotune_looks_for(AUTOTUNE) is None


@given(
    text=st.lists(
        st.sampled_from(
            ["irq", "kernel", " gravity", "... ", "5", " ns", "\n", ":", "=", "-", "9" * 20, "\0"]
        ),
        max_size=40,
    ).map("".join)
)
def test_hostile_outputs_of_autotune_and_of_the_clock(text: str):
    assert set(cobalt_facts.autotuned(text)) <= {"irq_ns", "kernel_ns", "user_ns"}
    assert cobalt_facts.autotune_looks_for(text) in (None, *cobalt_facts.CONTEXTS)
    assert cobalt_facts.gravity_of(text) is None
