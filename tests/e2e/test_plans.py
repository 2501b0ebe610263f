# SPDX-License-Identifier: MIT
"""Plans: what a TOML file may say, and what is said of one that is wrong."""

from __future__ import annotations

import string
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge.plan.make_plan import MAX_STEPS, Overrides, load_plan, make_plan, presets
from tests.support.cli import error_line, invoke

WRONG = [
    ("", "not contain any step"),
    ("[matrix]\n", "not contain any step"),
    ("[matrix]\nload = []\n", "the matrix gives 'load' an empty list"),
    ("[[step]]\nintervall = '1ms'\n", "step 1: unknown key 'intervall'; did you mean 'interval'?"),
    ("[[step]]\n[[step]]\nlaod = 'cpu'\n", "step 2: unknown key 'laod'; did you mean 'load'?"),
    ('targets = "local"\n[[step]]\n', 'write it as a list: ["local"]'),
    ("[[stpe]]\n", "unknown key 'stpe'; did you mean 'step'?"),
    ("[defaults]\npolicyy = 'fifo'\n[[step]]\n", "unknown key 'policyy'; did you mean 'policy'?"),
    ("[[step]]\ninterval = '1parsec'\n", "unknown unit 'parsec'"),
    ("[[step]]\ninterval = 5\n", "5 has no unit; give 5us"),
    ("[[step]]\ninterval = 1.5\n", "with a unit"),
    ("[[step]]\ninterval = '0'\n", "longer than 0"),
    ("[[step]]\ninterval = '-1ms'\n", "longer than 0"),
    ("[[step]]\ncount = 5\nduration = '1s'\n", "duration or count, not both"),
    ("[[step]]\nprobe = 'wakeupp'\n", "unknown probe 'wakeupp'; did you mean 'wakeup'?"),
    ("[[step]]\nload = 'cpuu'\n", "unknown load 'cpuu'; did you mean 'cpu'?"),
    ("[[step]]\ndeployment = 'HX'\n", "unknown deployment 'HX'"),
    ("[[step]]\npriority = '98'\n", "'98' is not a whole number"),
    ("[[step]]\npriority = true\n", "'True' is not a whole number"),
    ("[[step]]\ndma-latency = [1]\n", "such as 0, or give off"),
    ("[[step]]\nmemory-lock = {}\n", "on or off"),
    ("[[step]]\nsamples = 'yes'\n", "neither true nor false"),
    ("[[step]]\ncpu = [0, 1]\n", "CPU list such as 0-3,6"),
    ("step = 3\n", "[[step]]"),
    ("matrix = 3\n", "[matrix]"),
    ("repeats = 0\n[[step]]\n", "repeats: 0 is too small"),
    ("repeats = 1000\n[matrix]\npriority = [1,2,3,4,5,6,7,8,9,10,11]\n", "a run can measure at most 10000"),
    ("order = 'rnadom'\n[[step]]\n", "'random' or 'as-written'"),
    (
        "cross-check = 'oslat'\n[[step]]\n",
        "'cyclictest', 'rtla', 'xenomai-latency', 'xenomai-switchtest', 'rtai-latency' or 'rtai-switches'",
    ),
    ("load-warm-up = '2h'\n[[step]]\n", "the maximum is 1h"),
    ("name = '../../etc'\n[[step]]\n", "name"),
    ("seed = -1\n[[step]]\n", "seed"),
    ("require = 5\n[[step]]\n", "require"),
    ("[step]\nload = 'idle'\n", "[[step]]"),
]


@pytest.mark.parametrize(("text", "expected_text"), WRONG)
def test_a_wrong_plan(tmp_path: Path, text: str, expected_text: str) -> None:
    plan = tmp_path / "my.toml"
    plan.write_text(text)
    with pytest.raises(InputError) as error:
        load_plan(str(plan), Overrides())
    assert expected_text in str(error.value)
    assert str(plan) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("content", "expected_text"),
    [
        (b"no toml", "is not TOML"),
        (b"\xff\xfe\x00", "is not TOML"),
        (b"[[step]]\nintervall='1ms'", "did you mean 'interval'?"),
        (b"require='x'\n[[step]]", "write it like"),
    ],
)
def test_a_wrong_plan_on_the_command_line(tmp_path: Path, content: bytes, expected_text: str) -> None:
    plan = tmp_path / "my.toml"
    plan.write_bytes(content)
    assert expected_text in error_line(invoke("run", plan, "--out", tmp_path / "out"), 2)
    assert [entry.name for entry in tmp_path.iterdir()] == ["my.toml"]
    assert "plan" in error_line(invoke("run", f"{tmp_path}/", "--out", tmp_path / "out"), 2)


def test_what_the_command_line_says_is_over_the_plan(tmp_path: Path) -> None:
    plan = tmp_path / "my.toml"
    plan.write_text(
        "seed = 4\nrepeats = 2\nrequire = 'latency<=1ms'\n[defaults]\nduration = "
        "'5s'\n[[step]]\ncount = 100\n[[step]]\nload = 'cpu'\n"
    )
    made = load_plan(str(plan), Overrides())
    assert [(key.load, key.parameters.get("count"), key.repeat) for key in sorted(made.steps, key=lambda key: (key.repeat, key.load))] == [
        ("cpu", None, 1), ("idle", 100, 1), ("cpu", None, 2), ("idle", 100, 2),
    ]  # fmt: skip
    over = load_plan(
        str(plan),
        Overrides({"duration": "2s", "cpu": 0}, loads=["memory"], repeats=1, seed=9, require="latency<=2ms"),
    )
    (key,) = over.steps
    assert (
        key.load,
        key.parameters.get("duration_ns"),
        key.parameters.get("count"),
        key.parameters.get("cpu"),
    ) == (
        "memory",
        2 * 10**9,
        None,
        "0",
    )
    assert (over.seed, over.require) == (9, "latency<=2ms")
    with pytest.raises(InputError, match=r"^command line: interval: '1' has no unit"):
        load_plan(str(plan), Overrides({"interval": "1"}))


def test_every_preset_is_a_good_plan() -> None:
    assert set(presets()) >= {"quick", "standard", "papers"}
    for name, description in presets().items():
        assert load_plan(name, Overrides()).steps
        assert description


def test_the_order_follows_from_the_seed() -> None:
    written = {"matrix": {"interval": ["1ms", "2ms", "3ms", "4ms", "5ms"]}, "repeats": 5}
    orders = [
        [
            (key.repeat, key.parameters.get("interval_ns"))
            for key in make_plan(written, "p", Overrides(seed=seed)).steps
        ]
        for seed in (1, 1, 2)
    ]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])
    assert orders[0] != sorted(orders[0])
    drawn = {make_plan(written, "p", Overrides()).seed for _ in range(5)}
    assert len(drawn) == 5


words = st.sampled_from(
    [
        "name",
        "step",
        "matrix",
        "defaults",
        "repeats",
        "order",
        "seed",
        "require",
        "cross-check",
        "load-warm-up",
    ]
)
keys = st.sampled_from(
    [
        "probe",
        "load",
        "deployment",
        "interval",
        "duration",
        "count",
        "priority",
        "cpu",
        "dma-latency",
        "memory-lock",
        "samples",
        "warm-up",
    ]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["wakeup", "idle", "1ms", "0-3", "off", "fifo"])
    | st.datetimes(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(keys | st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
hostile = st.dictionaries(
    words | st.text(max_size=5),
    values
    | st.lists(st.dictionaries(keys, values, max_size=4), max_size=3)
    | st.dictionaries(keys, values, max_size=4),
    max_size=5,
)


@given(hostile, st.dictionaries(keys, values, max_size=2))
def test_whatever_a_plan_holds_it_is_a_plan_or_one_line(
    written: dict[str, Any], parameters: dict[str, Any]
) -> None:
    try:
        plan = make_plan(written, "plan x", Overrides(parameters))
    except InputError as error:
        assert str(error)
        assert "Traceback" not in str(error)
        return
    assert 0 < len(plan.steps) <= MAX_STEPS
    assert all(key.parameters for key in plan.steps)


@given(st.text(alphabet=string.printable, max_size=60))
def test_any_text_is_toml_or_one_line(text: str) -> None:
    try:
        written = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    with pytest.raises(InputError):
        make_plan(written, "plan x", Overrides())


def test_explain_refuses_a_plan_of_kernel_space(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text("[[step]]\nspace = 'kernel'\n")
    completed = invoke(
        "run", plan, "--explain", "--target", "ssh://board", env={"PATH": str(tmp_path)}
    )  # there is no ssh: nothing is measured
    assert completed.returncode == 3
    assert "--explain has no effect" in completed.stderr
