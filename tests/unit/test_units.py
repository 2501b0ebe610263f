# SPDX-License-Identifier: MIT
"""Durations and CPU lists, there and back, and what is neither."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtgauge.units import (
    MAX_CPU,
    MAX_NS,
    NS_PER_UNIT,
    format_cpu_list,
    format_duration,
    format_share,
    format_time,
    name_cpus,
    parse_cpu_list,
    parse_duration_ns,
    plural,
)


@pytest.mark.parametrize(
    ("text", "ns"),
    [("100us", 100_000), ("1ms", 10**6), ("10s", 10**10), ("1h", 3600 * 10**9), ("1.5ms", 1_500_000), ("0.25us", 250),
     (" 5 µs ", 5_000), ("5μs", 5_000), ("-1us", -1000),
     ("2min", 120 * 10**9)],
)  # fmt: skip
def test_durations_as_the_field_writes_them(text, ns):
    assert parse_duration_ns(text) == ns


@settings(max_examples=300)
@given(st.integers(-MAX_NS, MAX_NS))
def test_a_duration_prints_as_it_parses(ns):
    assert parse_duration_ns(format_duration(ns)) == ns


@settings(max_examples=300)
@given(
    whole=st.integers(0, 10**6),
    digits=st.from_regex(r"[0-9]{1,12}", fullmatch=True),
    unit=st.sampled_from(sorted(NS_PER_UNIT)),
)
def test_a_decimal_number_is_exact_or_refused(whole, digits, unit):
    scaled = (whole * 10 ** len(digits) + int(digits)) * NS_PER_UNIT[unit]
    exact, rest = divmod(scaled, 10 ** len(digits))
    if rest == 0 and exact <= MAX_NS:
        assert parse_duration_ns(f"{whole}.{digits}{unit}") == exact
    else:
        with pytest.raises(ValueError, match=r"whole number|292 years"):
            parse_duration_ns(f"{whole}.{digits}{unit}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a duration"), ("us", "not a duration"),
        ("1,5ms", "not a duration"), ("١us", "not a duration"), ("1e3us", "not a duration"),
        ("inf", "not a duration"),
        ("5", "no unit"), ("5 parsec", "unknown unit"), ("0.5ns", "whole number"),
        ("1." + "0" * 35 + "1ns", "whole number"), ("9999999999d", "292 years"),
        ("9" * 5000 + "s", "not a duration"),
    ],
)  # fmt: skip
def test_what_is_no_duration(text, words):
    with pytest.raises(ValueError, match=words):
        parse_duration_ns(text)


@settings(max_examples=300)
@given(st.text(max_size=30))
def test_any_text_is_a_duration_or_a_value_error(text):
    for parse in (parse_duration_ns, parse_cpu_list):
        try:
            parse(text)
        except ValueError as error:
            assert "\n" not in str(error) or "\n" in text


@settings(max_examples=200)
@given(st.sets(st.integers(0, MAX_CPU), min_size=1, max_size=60))
def test_a_cpu_list_prints_as_it_parses(cpus):
    assert parse_cpu_list(format_cpu_list(list(cpus))) == sorted(cpus)


@pytest.mark.parametrize(("text", "cpus"), [("0-3,6", [0, 1, 2, 3, 6]), ("6,0-1,1", [0, 1, 6]), (" 2 ", [2])])
def test_cpu_lists(text, cpus):
    assert parse_cpu_list(text) == cpus


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a CPU list"),
        ("3-1", "backwards"),
        ("-1", "not a CPU list"),
        ("0-9999", "beyond"),
        ("a", "not a CPU list"),
        ("1,,2", "not a CPU list"),
    ],
)
def test_what_is_no_cpu_list(text, words):
    with pytest.raises(ValueError, match=words):
        parse_cpu_list(text)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "-"),
        (0, "0 ns"),
        (999, "999 ns"),
        (1_500, "1.50 us"),
        (15_300, "15.3 us"),
        (153_000, "153 us"),
        (1_530_000, "1.53 ms"),
        (2 * 10**9, "2.00 s"),
    ],
)
def test_measured_times_for_people(ns, text):
    assert format_time(ns) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 windows"), (1, "1 window"), (2, "2 windows"), (12_345, "12,345 windows")]
)
def test_one_has_no_s_and_thousands_have_a_comma(number, text):
    assert plural(number, "window") == text


SIZES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


@given(st.integers(min_value=1, max_value=999 * 10**9))
def test_a_time_has_at_most_three_digits_and_is_right_to_them(ns: int) -> None:
    number, unit = format_time(ns).split()
    assert len(number.replace(".", "")) <= 3
    assert len(number.replace(".", "")) == 3 or ns < 100
    assert abs(float(number) * SIZES[unit] - ns) <= 0.00501 * ns
    assert format_time(-ns) == f"-{number} {unit}"


@given(st.integers(min_value=1, max_value=10**7), st.data())
def test_a_share_has_three_digits_and_only_all_is_100_percent(every: int, data: st.DataObject) -> None:
    share = data.draw(st.integers(min_value=1, max_value=every)) / every
    text = format_share(share)
    assert (text == "100 %") is (share == 1)
    if text.startswith("1 in "):
        assert abs(1 / int(text.removeprefix("1 in ").replace(",", "")) - share) <= 0.001 * share
        return
    number = text.removesuffix(" %")
    assert len(number.replace(".", "").lstrip("0")) <= 3 or share >= 0.9995
    assert abs(float(number) / 100 - share) <= 0.00501 * share
    assert number != "100" or share == 1


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (999.6, "1.00 us"),
        (9_996, "10.0 us"),
        (99_960, "100 us"),
        (999_600, "1.00 ms"),
        (99_950_000, "100 ms"),
    ],
)
def test_a_time_that_is_rounded_up_has_three_digits(ns: float, text: str) -> None:
    assert format_time(ns) == text


def test_cpus_are_named_in_the_singular_or_plural() -> None:
    assert (name_cpus([3]), name_cpus([2, 0, 1])) == ("CPU 3", "CPUs 0-2")
