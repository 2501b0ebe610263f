# SPDX-License-Identifier: MIT
"""No text makes a reader take for ever, and none waits for a pipe.

The whole of it, on 1 MB each: ext/importers/bench/slow_text.py.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from ext.importers.tests.hostile_text import (
    TOKENS,
    TooSlowError,
    alone,
    cpu_seconds,
    filled,
    mixtures,
    read_all,
    valid_with,
)
from rtgauge.errors import InputError
from rtgauge_ext.importers.import_edges import EdgeOptions, import_edges
from rtgauge_ext.instrument.edge_file import EdgeFile

SIZE = 40_000
"""Of a text, which may be one line: a time in its square would be some 10^9 steps."""
MOST_S = 2.0
"""CPU time; a reader needs at most a tenth of it."""
PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
def test_each_token_repeated(part, tmp_path):
    for name, content in list(alone(SIZE, SIZE))[part::PARTS]:
        read_all(tmp_path / "text", name, content, MOST_S)


@pytest.mark.parametrize("seed", range(3))
def test_mixtures_of_tokens(seed, tmp_path):
    for name, content in mixtures(SIZE, SIZE, 8, seed):
        read_all(tmp_path / "text", name, content, MOST_S)


@pytest.mark.parametrize("token", [" ", ", "])
def test_a_token_in_every_line_of_a_file_of_each_format(token, tmp_path):
    for name, content in valid_with(token, 2_000):
        read_all(tmp_path / "text", name, content, MOST_S)


def test_the_limit_of_these_tests_is_one():
    with pytest.raises(TooSlowError), cpu_seconds(0.05, "a loop"):
        while True:
            pass


@pytest.mark.parametrize(
    "content",
    [
        b"time_s,CH1\n" + filled("1", 200_000) + b"x\n" + b"1,0\n" * 5,
        b"time_s," + filled("a", 200_000) + b"\n0,1\n",
        b"$date " + filled("$a ", 2_000_000),
        b"$var wire 1 ! a $end $enddefinitions $end #" + filled("1", 1_000_000),
    ],
    ids=[
        "a number without end",
        "a name without end",
        "words without $end",
        "a time without end",
    ],
)
def test_files_of_edges_that_took_minutes(content, tmp_path):
    path = tmp_path / "scope.csv"
    path.write_bytes(content)
    with cpu_seconds(MOST_S, "edges"), suppress(InputError):
        list(EdgeFile.open(path).edges([0]))


def test_edges_do_not_wait_for_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(InputError, match=r"not a regular file|Is a directory"):
            import_edges(path, tmp_path / "runs", EdgeOptions("1", "2"), command=["rtgauge"])


def test_the_tokens_are_fifty_or_more():
    assert len(set(TOKENS)) == len(TOKENS) >= 50
