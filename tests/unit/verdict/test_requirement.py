# SPDX-License-Identifier: MIT
"""Requirements as people write them, and as they should not."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge.probe.probe_registry import requirement_metrics
from rtgauge.verdict.requirement import Requirement, parse_requirement

MS = 1_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("period=1ms latency<=200us hardness=100%", Requirement("latency", 200_000, Fraction(1), MS)),
        ("  latency <= 200us,  period = 1ms ", Requirement("latency", 200_000, Fraction(1), MS)),
        ("response≤50us hardness=95%", Requirement("response", 50_000, Fraction(95, 100))),
        (
            "response<=1.5ms hardness=99.999% confidence=99%",
            Requirement("response", 1_500_000, Fraction(99_999, 100_000), None, Fraction(99, 100)),
        ),
        ("latency<=200us hardness=hard", Requirement("latency", 200_000)),
        ("p99.9<=100us", Requirement("latency", 100_000, Fraction(999, 1000))),
        ("period=1ms P50 <= 100us", Requirement("latency", 100_000, Fraction(1, 2), MS)),
        # Brown and Martin: no later than half the period.
        ("period=1ms", Requirement("latency", 500_000, Fraction(1), MS)),
        ("period=1ms hardness=95%", Requirement("latency", 500_000, Fraction(95, 100), MS)),
    ],
)
def test_what_people_write(text, expected):
    assert parse_requirement(text) == expected
    assert parse_requirement(str(expected)) == expected


@settings(max_examples=300)
@given(
    metric=st.sampled_from(requirement_metrics()),
    bound=st.integers(1, 2**63 - 1),
    period=st.none() | st.integers(1, 2**63 - 1),
    hardness=st.integers(1, 10**10).map(lambda n: Fraction(n, 10**10)),
    confidence=st.integers(1, 10**6 - 1).map(lambda n: Fraction(n, 10**6)),
)
def test_a_requirement_prints_as_it_parses(metric, bound, period, hardness, confidence):
    hardness = Fraction(1) if metric == "gap" else hardness
    requirement = Requirement(metric, bound, hardness, period, confidence)
    assert parse_requirement(str(requirement)) == requirement


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "give a requirement a period or a bound"),
        ("hardness=95%", "give a requirement a period or a bound"),
        ("latancy<=200us", "unknown key 'latancy'; did you mean 'latency'"),
        ("latency<=200", "no unit"),
        ("latency<=200kg", "unknown unit 'kg'"),
        ("latency<=200 us", "leave no space between a number and its unit"),
        ("latency<200us", "written latency<=200us"),
        ("latency=200us", "written latency<=200us"),
        ("period<=1ms", "written period=1ms"),
        ("latency<=-5us", "longer than 0"),
        ("period=0ms", "longer than 0"),
        ("latency<=1us latency<=2us", "twice"),
        ("latency<=1us irq-latency<=2us", "one bound at a time"),
        ("latency<=1us hardness=0.95", "has no %"),
        ("latency<=1us hardness=101%", "at most 100%"),
        ("latency<=1us hardness=0%", "more than 0%"),
        ("latency<=1us hardness=most", "share in percent"),
        ("latency<=1us confidence=100%", "confidence of 100%"),
        ("period=1ns", "half a period"),
        (
            "hardness=99% p99.9<=1us",
            "p99.9 and hardness set the same thing; give latency<=1us hardness=99.9%",
        ),
        ("p99.9<=1us hardness=99%", "hardness is given twice"),
        ("p99.9<1us", "written latency<=1us"),
        ("p999<=1us", "at most 100%"),
        ("latency", "not understood"),
        ("x" * 2000, "2000 characters"),
    ],
)
def test_errors_are_one_line_with_an_example(text, words):
    with pytest.raises(InputError) as error:
        parse_requirement(text)
    assert words in str(error.value)
    assert "latency<=200us" in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.status == 2


@settings(max_examples=300)
@given(
    st.text(max_size=60)
    | st.from_regex(
        r"(period|latency|jitter|hardness)(<=|=|≤)[0-9.]{1,8}(us|ms|%|)( |,)?(hardness=[0-9.]{1,5}%)?",
        fullmatch=True,
    )
)
def test_hostile_text_is_a_requirement_or_an_input_error(text):
    with contextlib.suppress(InputError):
        assert parse_requirement(text).bound_ns > 0
