# SPDX-License-Identifier: MIT
"""A probe is its engine file (engine/probes/x.c, or a folder x of them), src/rtgauge/probe/x.py and
docs/probes/x.md.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge.probe.descriptor import key_names, normalise
from rtgauge.probe.probe_registry import PROBES

ROOT = Path(__file__).parents[3]
VERB = re.compile(r'^PROBE\("([\w-]+)"', re.MULTILINE)
"""What makes a probe a verb of the engine."""


def test_each_probe_of_the_engine_has_its_descriptor():
    sources = [*ROOT.glob("engine/probes/**/*.c"), *ROOT.glob("ext/*/engine/**/*.c")]
    verbs = [verb for path in sources for verb in VERB.findall(path.read_text(encoding="utf-8"))]
    assert sorted(verbs) == sorted(PROBES)


def test_each_probe_has_its_page_and_its_presenter():
    checked = subprocess.run(
        [sys.executable, "tools/check_probes.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


SET = {"task": [{"name": "a", "period": "10ms", "execution": "1ms"}]}
LEAST = {"path": {"path": "icmp:10.0.0.1"}, "taskset": SET, "watch": {"pid": 1}}
"""What a probe cannot do without."""


@pytest.mark.parametrize("name", PROBES)
def test_defaults_are_a_command_line(name):
    probe = PROBES[name]
    parameters = normalise(probe, LEAST.get(name, {}), "x")
    words = probe.arguments(parameters, "/s")
    assert words[0] == name
    assert all(word.startswith("--") and "=" in word and "None" not in word for word in words[1:])
    assert probe.expected_ns(parameters) > 0


@pytest.mark.parametrize(
    "name", [name for name in PROBES if name not in ("calibrate", "inversion", "taskset", "tire", "watch")]
)
def test_a_count_takes_the_place_of_the_duration(name):
    key = "cycles" if name in ("periodic", "response") else "count"
    words = PROBES[name].arguments(normalise(PROBES[name], {key: 7, **LEAST.get(name, {})}, "x"), None)
    assert "--count=7" in words
    assert not any(word.startswith(("--duration", "--samples")) for word in words)
    with pytest.raises(InputError, match="not both"):
        normalise(PROBES[name], {key: 7, "duration": "1s"}, "x")


@pytest.mark.parametrize(
    ("name", "written", "words"),
    [
        ("noise", {"busy": "90ms"}, "80% of round"),
        ("noise", {"round": "10ms"}, "80% of round"),
    ],
)
def test_wrong_parameters_are_one_line(name, written, words):
    with pytest.raises(InputError, match=words) as error:
        normalise(PROBES[name], written, "plan x, step 1")
    assert "\n" not in str(error.value)


@given(
    st.sampled_from(sorted(PROBES)),
    st.dictionaries(
        st.text(max_size=12),
        st.one_of(st.text(max_size=12), st.integers(), st.booleans(), st.none()),
        max_size=4,
    ),
    st.data(),
)
def test_hostile_parameters_end_in_an_input_error(name, written, data):
    known = data.draw(
        st.dictionaries(
            st.sampled_from(key_names(PROBES[name])),
            st.one_of(st.text(max_size=12), st.integers(), st.booleans()),
            max_size=4,
        )
    )
    try:
        parameters = normalise(PROBES[name], {**written, **known}, "x")
        arguments = PROBES[name].arguments(parameters, None)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert arguments[0] == name
