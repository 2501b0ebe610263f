# SPDX-License-Identifier: MIT
"""What `rtgauge tune` refuses before it measures."""

from __future__ import annotations

import sys

import pytest
from tests.support.command_line import refused
from tests.support.messages import missing

from rtgauge.cli.main import main
from rtgauge.errors import EXIT_CANNOT_MEASURE


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["tune", "--isolate", "foo"], "--isolate: 'foo' is not a whole number (see rtgauge tune --help)"),
        (["tune", "--isolate", "1.5"], "--isolate: '1.5' is not a whole number"),
        (["tune", "--isolate", ""], "--isolate: '' is not a whole number"),
        (["tune", "--isolate", "9" * 5000], "--isolate: the number has too many digits"),
        (["tune", "--isolate", "0"], "--isolate: 0 is too small; the minimum is 1"),
        (["tune", "--isolate", "4097"], "--isolate: 4097 is too large; the maximum is 4096"),
        (["tune", "--pid", "\x1b[31m"], "is not a whole number"),
        (["tune", "--only", ","], "--only ',' does not contain a name"),
        (["tune", "--without", ""], "--without '' does not contain a name"),
        (["tune", "--cpu", "x"], "--cpu 'x': give CPUs such as 1 or 2-3"),
    ],
)
def test_a_wrong_value_is_named_with_its_option(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: list[str], why: str
):
    line = refused(monkeypatch, capfd, *words)
    assert why in line
    assert "Input should be" not in line
    assert "\x1b" not in line


@pytest.mark.parametrize("words", [["--require", "latency<=1us", "--only", "rcu-normal"]])
def test_tune_needs_root(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: list[str]
):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["rtgauge", "tune", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == EXIT_CANNOT_MEASURE
    (line,) = capfd.readouterr().err.splitlines()
    assert not missing(line, "rtgauge tune", "root")
