# SPDX-License-Identifier: MIT
"""tire on the host: parameters and their refusals, the engine's command line, the state file, the lines for
people.
"""

from __future__ import annotations

import csv
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import InputError, RecordError
from rtgauge.plan.make_plan import Overrides, make_plan
from rtgauge.probe.descriptor import normalise
from rtgauge.probe.probe_registry import PROBES
from rtgauge_ext.tire.state_file import export_state, read_state
from rtgauge_ext.tire.tire_probe import THREAD_WORDS, most_damping

if TYPE_CHECKING:
    from pathlib import Path

TIRE = PROBES["tire"]


def words(samples_dir: str | None = None, **written: Any) -> list[str]:
    return TIRE.arguments(
        normalise(TIRE, {name.replace("_", "-"): value for name, value in written.items()}, "x"), samples_dir
    )


def test_the_command_line_has_whole_numbers_in_billionths() -> None:
    printed_words = words(
        mass="7.5",
        radius=0.25,
        stiffness="0.000000003",
        speed=2,
        period="10ms",
        threads="cores",
        free_running=True,
        solver="semaphore",
    )
    for word in (
        "--mass-nkg=7500000000",
        "--radius-nm=250000000",
        "--stiffness-nn-m=3",
        "--speed-nm-s=2000000000",
        "--period-ns=10000000",
        "--threads=cores",
    ):
        assert word in printed_words
    assert printed_words[-1] == "--free-running"
    assert not any(
        word.startswith(("--damping", "--state", "--samples", "--steps")) for word in printed_words
    )


def test_steps_take_the_place_of_the_duration() -> None:
    printed_words = words(steps=6000)
    assert "--steps=6000" in printed_words
    assert not any(word.startswith("--duration") for word in printed_words)
    with pytest.raises(InputError, match="not both"):
        words(steps=5, duration="1s")


def test_a_state_goes_where_the_samples_go() -> None:
    assert "--state=/f/state.tire" in words("/f", state=True)
    assert "--samples-dir=/f" not in words("/f", state=True)
    assert "--samples-dir=/f" in words("/f", samples=True)


@pytest.mark.parametrize("word", [*THREAD_WORDS, 3, "3"])
def test_threads_are_a_number_or_a_word(word: str | int) -> None:
    assert f"--threads={word}" in words(threads=word)


@pytest.mark.parametrize(
    ("written", "reported"),
    [
        ({"nodes": 4002}, "multiple of 4, .* use 4000 or 4004"),
        ({"nodes": 3}, "too few"),
        ({"nodes": 16_000_004}, "too many"),
        ({"nodes": 8, "threads": 5}, "5 threads are more than 4 pairs of nodes"),
        ({"nodes": 8, "threads": 9, "solver": "semaphore"}, "9 threads are more than 8 nodes"),
        ({"threads": 2, "solver": "serial"}, "has only one"),
        ({"threads": 0}, "too few"),
        ({"threads": 99999}, "too many"),
        ({"threads": "some"}, "one, cores, hardware-threads or twice"),
        ({"threads": True}, "a number of threads"),
        ({"period": "10"}, "no unit"),
        ({"period": "500ns"}, "give at least 1us"),
        ({"stiffness": 100}, "at most 0.08333 N s/m .* stiffness can be at most 8.333 N/m"),
        ({"damping": 1}, "the stiffness with damping 1 N s/m is unstable"),
        ({"damping": 0.05, "stiffness": 6}, "unstable"),
        ({"stiffness": 0}, "more than 0"),
        ({"mass": "heavy"}, "not a number"),
        ({"mass": 0}, "more than 0"),
        ({"mass": -1}, "out of range"),
        ({"mass": float("nan")}, "give a number"),
        ({"radius": 1e-12}, "too small"),
        ({"free-running": True}, "only with the solver semaphore"),
        ({"without": "springs", "state": True}, "no final state"),
        ({"solver": "magic"}, "magic"),
        ({"floor": "maybe"}, "on or off"),
    ],
)
def test_what_cannot_be_is_one_line(written: dict[str, Any], reported: str) -> None:
    with pytest.raises(InputError, match=reported) as error:
        normalise(TIRE, written, "plan x, step 1")
    assert "\n" not in str(error.value)


@given(
    st.integers(1, 4_000_000).map(lambda quarter: 4 * quarter),
    st.floats(0.01, 1000),
    st.floats(0.001, 0.999),
    st.floats(0.001, 0.999),
)
def test_within_the_bound_it_is_taken(nodes: int, mass: float, share: float, soft: float) -> None:
    damping = most_damping(nodes, mass) * share
    stiffness = damping / 0.01 * soft
    if stiffness * 1e9 >= 1 and damping * 1e9 >= 1:
        normalise(TIRE, {"nodes": nodes, "mass": mass, "damping": damping, "stiffness": stiffness}, "x")
    with pytest.raises(InputError, match="unstable"):
        normalise(
            TIRE, {"nodes": nodes, "mass": mass, "damping": most_damping(nodes, mass) * (1 + share)}, "x"
        )


def test_a_plan_and_a_matrix_take_it() -> None:
    matrix = {
        "probe": "tire",
        "solver": ["halo", "semaphore"],
        "nodes": [400, 4000],
        "threads": ["one", "twice"],
        "period": "10ms",
        "duration": "1s",
    }
    plan = make_plan({"name": "x", "matrix": matrix}, "plan x", Overrides())
    assert len(plan.steps) == 8
    assert {step.parameters.get("threads") for step in plan.steps} == {"one", "twice"}


def state_bytes(nodes: np.ndarray, steps: int = 3) -> bytes:
    return struct.pack("<8sqq", b"rtgtire\x01", len(nodes), steps) + nodes.astype("<f8").tobytes()


@pytest.fixture
def nodes() -> np.ndarray:
    return np.random.default_rng(5).normal(size=(8, 4)) * 1e-7


def test_a_state_keeps_every_digit_in_every_form(tmp_path: Path, nodes: np.ndarray) -> None:
    source = tmp_path / "state.tire"
    source.write_bytes(state_bytes(nodes))
    assert read_state(source).steps == 3
    assert np.array_equal(read_state(source).nodes, nodes)
    for name in ("a.csv", "a.npy", "a.bin"):
        export_state(source, tmp_path / name)
    with (tmp_path / "a.csv").open() as text:
        rows = list(csv.DictReader(text))
    assert [int(row["node"]) for row in rows] == list(range(8))
    assert np.array_equal(
        np.array([[float(row[name]) for name in ("x", "y", "vx", "vy")] for row in rows]), nodes
    )
    assert np.array_equal(np.load(tmp_path / "a.npy"), nodes)
    assert (tmp_path / "a.bin").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("name", ["state.csv", "state.npy", "state.tire"])
def test_a_state_is_not_written_through_a_link(tmp_path: Path, nodes: np.ndarray, name: str) -> None:
    source, out, victim = tmp_path / "source.tire", tmp_path / name, tmp_path / "victim"
    source.write_bytes(state_bytes(nodes))
    victim.write_text("precious")
    out.symlink_to(victim)
    export_state(source, out)
    assert victim.read_text() == "precious"
    assert not out.is_symlink()


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (lambda data: data[:-1], "damaged"),
        (lambda data: data[:20], "cut short"),
        (lambda data: b"", "not a file with the state"),
        (lambda data: b"rtgauge\x01" + data[8:], "not a file with the state"),
        (lambda data: data[:7] + b"\x02" + data[8:], "format 2"),
        (lambda data: data[:8] + struct.pack("<q", 2**62) + data[16:], "damaged"),
        (lambda data: data[:16] + struct.pack("<q", -1) + data[24:], "damaged"),
    ],
)
def test_a_state_that_is_none_is_refused(
    tmp_path: Path, nodes: np.ndarray, change: Any, reported: str
) -> None:
    file = tmp_path / "state.tire"
    file.write_bytes(change(state_bytes(nodes)))
    with pytest.raises(RecordError, match=reported):
        read_state(file)


@given(st.binary(max_size=200))
def test_hostile_states_end_in_a_record_error(tmp_path_factory: pytest.TempPathFactory, tail: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "hostile.tire"
    for data in (tail, b"rtgtire\x01" + tail):
        file.write_bytes(data)
        try:
            actual = read_state(file)
        except RecordError as error:
            assert "\n" not in str(error)
        else:
            assert actual.nodes.shape[1] == 4
