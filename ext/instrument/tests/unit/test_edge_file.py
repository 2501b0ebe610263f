# SPDX-License-Identifier: MIT
"""Files with edges: one square wave as CSV and VCD, and what must not be taken for one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge_ext.instrument.edge_file import EdgeFile, Pairing
from rtgauge_ext.instrument.edges import Distances
from rtgauge_ext.instrument.messages import AnswerEdges, Edges
from rtgauge_ext.instrument.vcd import read_changes

# 1 MS/s from -1 ms on; the answer 7 us after the stimulus; half-periods of 100 us and one
# of 130.
STEP_S = 1e-6
START_S = -1e-3
HALVES_US = [100, 100, 130, 100, 100, 100, 100]
DELAY_US = 7
COUNT = 1_000


def _levels(delay_us: int = 0) -> list[int]:
    toggles = np.cumsum([50, *HALVES_US]) + delay_us
    return [int(np.searchsorted(toggles, i, side="right")) % 2 for i in range(COUNT)]


STIMULUS = _levels()
ANSWER = _levels(DELAY_US)
TIMES = [START_S + i * STEP_S for i in range(COUNT)]


def _changes() -> list[int]:
    return [0, *(i for i in range(1, COUNT) if (STIMULUS[i], ANSWER[i]) != (STIMULUS[i - 1], ANSWER[i - 1]))]


def _csv() -> str:
    return "time_s,CH1,CH2\n" + "".join(
        f"{t:.9f},{s},{a}\n" for t, s, a in zip(TIMES, STIMULUS, ANSWER, strict=True)
    )


def _csv_of_changes() -> str:
    return "\ufefftime_s, CH1, CH2\r\n" + "".join(
        f"{TIMES[i]:.9e},{STIMULUS[i]},{ANSWER[i]}\r\n" for i in _changes()
    )


def _vcd() -> str:
    head = (
        "$date Sun $end\n$version PulseView $end\n$comment\n  Acquisition with 2/8 channels at 1 MHz\n$end\n"
    )
    head += "$timescale 10 ns $end\n$scope module libsigrok $end\n"
    head += (
        '$var wire 1 ! D0 $end\n$var wire 1 " D1 $end\n$var wire 8 # BUS $end\n$upscope '
        '$end\n$enddefinitions $end\n$dumpvars\n0!\n0"\nbxxxxxxxx #\n$end\n'
    )
    return head + "".join(f'#{i * 100} {STIMULUS[i]}! {ANSWER[i]}"\nb1010{i % 2} #\n' for i in _changes())


STYLES = {"CSV": _csv, "CSV of changes": _csv_of_changes, "VCD": _vcd}


def _file(tmp_path: Path, text: str, name: str = "scope.csv") -> EdgeFile:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return EdgeFile.open(path)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("block_bytes", [70, 1 << 20])
def test_half_periods_of_every_style(tmp_path, style, block_bytes):
    file = _file(tmp_path, STYLES[style]())
    assert file.style == style[:3]
    distances = Distances()
    halves_ns = np.concatenate(
        [
            distances.add(block.times_ns, block.high).distances
            for block in file.edges([0], block_bytes=block_bytes)
        ]
    )
    assert halves_ns.tolist() == [1000 * half for half in HALVES_US]


@pytest.mark.parametrize("style", STYLES)
def test_responses_of_every_style(tmp_path, style):
    file = _file(tmp_path, STYLES[style]())
    pairing = Pairing()
    responses_ns = np.concatenate(
        [pairing.add(block).response_ns for block in file.edges([0, 1], block_bytes=2_000)]
    )
    assert responses_ns.tolist() == [1000 * DELAY_US] * (len(HALVES_US) + 1)
    assert (pairing.missed, pairing.extra, pairing.open) == (0, 0, False)


def test_times_are_those_of_the_file(tmp_path):
    (block,) = _file(tmp_path, _csv()).edges([0])
    assert block.times_ns[0] == -1_000_000 + 50_000
    assert block.high[0]


@pytest.mark.parametrize("block_tokens", [1, 3, 1 << 17])
def test_a_dump_is_read_in_blocks(tmp_path, block_tokens):
    file = _file(tmp_path, _vcd())
    assert file.header is not None
    codes = [code for _, code in file.header.signals]
    blocks = list(read_changes(file.path, file.header, codes, block_tokens=block_tokens))
    changes = [change for block in blocks for change in zip(*block, strict=True)]
    expected = [
        (i * 1000, line, bool(levels[i]))
        for i in _changes()[1:]
        for line, levels in enumerate((STIMULUS, ANSWER))
        if levels[i] != levels[i - 1]
    ]
    assert changes == expected


@pytest.mark.parametrize(
    ("style", "names"),
    [
        ("CSV", ["CH1", "CH2"]),
        ("CSV of changes", ["CH1", "CH2"]),
        ("VCD", ["libsigrok.D0", "libsigrok.D1"]),
    ],
)
def test_channels_by_name(tmp_path, style, names):
    file = _file(tmp_path, STYLES[style]())
    assert file.channels == names
    assert file.channel(names[1]) == 1
    assert file.channel(names[0].rpartition(".")[2].lower()) == 0
    with pytest.raises(InputError, match=r"the channel 'none'; choose from"):
        file.channel("none")


def test_a_lost_toggle_inverts_the_answers_that_follow(tmp_path):
    """The answer of the fourth stimulus is lost: from then on each goes to the other level."""
    rows = [
        (stimulus % 2, (stimulus - (late < 3) - (stimulus > 4 or (stimulus == 4 and late >= 3))) % 2)
        for stimulus in range(1, 12)
        for late in range(10)
    ]
    file = _file(
        tmp_path,
        "time_s,D0,D1\n" + "".join(f"{i}e-6,{a},{b}\n" for i, (a, b) in enumerate([(0, 0), *rows])),
    )
    pairing, anyway = Pairing(), Pairing(answer=AnswerEdges.ANY_EDGE)
    for block in file.edges([0, 1]):
        pairing.add(block)
        anyway.add(block)
    assert pairing.opposite >= 6
    assert (anyway.opposite, anyway.missed) == (0, 1)


def test_pairing_counts_what_has_no_partner(tmp_path):
    # stimulus up, answered; stimulus down, never; stimulus up, answered twice; stimulus down, open
    rows = [
        (0, 0, 0),
        (10, 1, 0),
        (15, 1, 1),
        (20, 0, 1),
        (30, 1, 1),
        (31, 1, 0),
        (33, 1, 1),
        (34, 1, 0),
        (40, 0, 0),
    ]
    file = _file(tmp_path, "time_s,CH1,CH2\n" + "".join(f"{t}e-6,{a},{b}\n" for t, a, b in rows))
    pairing = Pairing()
    (paired,) = [pairing.add(block) for block in file.edges([0, 1])]
    assert paired.stimulus_ns.tolist() == [10_000, 30_000]
    assert paired.response_ns.tolist() == [5_000, 3_000]
    assert (paired.missed_ns.tolist(), paired.unanswered_ns.tolist()) == ([20_000], [10_000])
    assert (pairing.missed, pairing.extra, pairing.open) == (1, 2, True)
    rising = Pairing(Edges.RISING)
    assert np.concatenate([rising.add(block).response_ns for block in file.edges([0, 1])]).tolist() == [
        5_000,
        3_000,
    ]
    assert (rising.missed, rising.extra) == (0, 0)
    anyway = Pairing(answer=AnswerEdges.ANY_EDGE)
    assert np.concatenate([anyway.add(block).response_ns for block in file.edges([0, 1])]).tolist() == [
        5_000,
        1_000,
    ]


def test_whole_periods_by_one_kind_of_edge(tmp_path):
    distances = Distances(Edges.FALLING)
    periods = np.concatenate(
        [distances.add(block.times_ns, block.high).distances for block in _file(tmp_path, _csv()).edges([0])]
    )
    assert periods.tolist() == [230_000, 200_000, 200_000]


BEGIN = "time_s,CH1\n"
DUMP = "$var wire 1 ! a $end $enddefinitions $end "


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "neither VCD nor CSV"),
        ("hello\nworld\n", "neither VCD nor CSV"),
        ("Time(s),CH1(V)\n0,3.3\n", "begins with the line time_s,CHANNEL"),
        ("time_s\n0\n", "neither VCD nor CSV"),
        ("time_s,CH1,CH1\n0,1,1\n", "neither VCD nor CSV"),
        (BEGIN + "0,0\n1,3.3\n", "neither 0 nor 1"),
        (BEGIN + "0,0\n1\n", "neither 0 nor 1"),
        (BEGIN + "0,0\n1,\n", "neither 0 nor 1"),
        (BEGIN + "0,0\n,1\n", "missing"),
        (BEGIN + "0,0\nnan,1\n", "missing"),
        (BEGIN + "0,0\n1,1,1\n", "has a row that cannot be read"),
        (BEGIN + "0,0\nOVER,1\n", "has a row that cannot be read"),
        (BEGIN + "1,0\n0,1\n", "backwards"),
        ("$timescale 1 ns $end\n$var wire 1 ! a $end\n", "definitions do not end"),
        ("$timescale 3 ns $end\n$enddefinitions $end\n", "time scale"),
        ("$timescale 1 zs $end\n$enddefinitions $end\n", "time scale"),
        ("$timescale 1 ns $end\n$enddefinitions $end\n", "not contain a one-bit signal"),
        ("$var wire 1 ! a[", "does not end|definitions do not end"),
        (DUMP + "#10 1! #5 0!", "backwards"),
        (DUMP + "#10 1! ?hello", "not a valid value change dump"),
        (DUMP + "#" + "9" * 400 + " ", "too large"),
        (DUMP + "#" + "9" * 5000 + " ", "not a valid value change dump"),
    ],
)
def test_what_is_no_such_file_is_refused_with_the_cause(tmp_path, text, why):
    with pytest.raises(InputError, match=why):
        list(_file(tmp_path, text).edges([0]))


def test_a_comment_without_an_end_takes_little_memory(tmp_path):
    with pytest.raises(InputError, match="does not end"):
        list(_file(tmp_path, DUMP + "$comment " + "x" * 2_000_000).edges([0]))


def test_unknown_levels_and_vectors_of_one_bit(tmp_path):
    file = _file(tmp_path, DUMP + "#0 0! #10 x! #20 0! #30 b1 ! #40 z! #50 0!")
    (block,) = file.edges([0])
    assert (block.times_ns.tolist(), block.high.tolist()) == ([30, 50], [True, False])


def test_binary_files_and_files_that_are_not_there(tmp_path):
    path = tmp_path / "x"
    for data in (b"\x89PNG\0\0\0", "time_s,CH1\n".encode("utf-16")):
        path.write_bytes(data)
        with pytest.raises(InputError, match="neither VCD nor CSV"):
            EdgeFile.open(path)
    with pytest.raises(InputError, match="cannot be read"):
        EdgeFile.open(tmp_path / "none")


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_make_anything_but_edges_or_an_input_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "f"
    path.write_bytes(data)
    _read_all(path)


PIECES = st.lists(
    st.sampled_from(
        [
            "1",
            "0",
            "2.5",
            ",",
            ";",
            "\t",
            "\n",
            "\r\n",
            "time_s",
            "CH1",
            "-",
            "e",
            "1e999",
            "nan",
            '"',
            "$end ",
            "$comment ",
            "#5 ",
            "1! ",
            "b0 ! ",
            "0.1,1\n",
            "0.2,3\n",
            "x",
        ]
    ),
    max_size=60,
)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(
        [
            "",
            "$timescale 1 ns $end $var wire 1 ! a $end $enddefinitions $end ",
            BEGIN,
            _csv()[:200],
            _vcd()[:200],
        ]
    ),
    PIECES,
)
def test_nor_does_almost_right_text(tmp_path_factory, begin, pieces):
    path = tmp_path_factory.mktemp("fuzz") / "f"
    path.write_text(begin + "".join(pieces))
    _read_all(path)


def _read_all(path: Path) -> None:
    try:
        file = EdgeFile.open(path)
        pairing, distances = Pairing(), Distances()
        for block in file.edges(sorted({0, len(file.channels) - 1}), block_bytes=64):
            pairing.add(block)
            distances.add(block.times_ns[block.line == 0], block.high[block.line == 0])
            assert (np.diff(block.times_ns) >= 0).all()
    except InputError as error:
        assert str(error)


@pytest.mark.parametrize("last", ["1e308", "1e290", "4e18", "-1e308"])
def test_times_beyond_64_bits_are_refused(tmp_path, last):
    with pytest.raises(InputError, match="beyond 100 years"):
        list(_file(tmp_path, f"{BEGIN}0,1\n{last},0\n").edges([0]))
