# SPDX-License-Identifier: MIT
"""What other tools measured is judged: gaps, and histograms that do not reach the bound."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.messages import missing

from ext.importers.tests.foreign_files import FILES
from rtgauge.record.model import VerdictWord
from rtgauge.record.reader import Record
from rtgauge.verdict.answer_words import answer_words, late_share
from rtgauge.verdict.decision import judge
from rtgauge.verdict.requirement import parse_requirement
from rtgauge.verdict.run_verdict import judge_run
from rtgauge_ext.importers.imported_record import import_file

NO_SAMPLE = (
    FILES["hwlatdetect.txt"].partition("test finished")[0]
    + """test finished
Max Latency: Below threshold
Samples recorded: 0
Samples exceeding threshold: 0
"""
)


@pytest.mark.parametrize(
    ("name", "text", "bound", "word"),
    [
        ("oslat.txt", None, "80us", VerdictWord.FAILS),
        ("oslat.txt", None, "200us", VerdictWord.HOLDS),
        ("rt-tests+oslat.json", None, "20us", VerdictWord.FAILS),
        ("rt-tests+oslat.json", None, "200us", VerdictWord.HOLDS),
        ("hwlatdetect.txt", None, "20us", VerdictWord.FAILS),
        ("hwlatdetect.txt", None, "50us", VerdictWord.HOLDS),
        ("hwlatdetect.txt", NO_SAMPLE, "20us", VerdictWord.HOLDS),
        ("hwlatdetect.txt", NO_SAMPLE, "5us", VerdictWord.CANNOT_TELL),
        ("rtla+osnoise.txt", None, "50us", VerdictWord.FAILS),
        ("rtla+osnoise.txt", None, "100us", VerdictWord.HOLDS),
        ("rtla+hwnoise.txt", None, "10us", VerdictWord.HOLDS),
    ],
)
def test_other_tools_gaps_are_judged_too(tmp_path, name, text, bound, word):
    source = tmp_path / name
    source.write_text(text or FILES[name])
    record = Record.open(import_file(source, tmp_path / "runs"))
    whole, *_ = judge_run(parse_requirement(f"gap<={bound}"), record)
    assert whole.word == word, whole.reason
    assert whole.exposure is None


def test_a_bound_beyond_the_histogram_is_named_as_the_cause(tmp_path: Path):
    """No longer measurement of this kind would tell, and 100 % as the largest share says nothing."""
    screen = tmp_path / "screen.txt"
    screen.write_text("T: 0 ( 2013) P:80 I:1000 C:1000000 Min:      6 Act:   18 Avg:   16 Max:     306\n")
    record = Record.open(import_file(screen, tmp_path))
    item, windows = record.steps[0], record.windows(record.steps[0])
    result = judge(parse_requirement("period=1ms latency<=100us hardness=99%"), item, windows)
    assert result.word == VerdictWord.CANNOT_TELL
    assert "histogram ends below" in answer_words(result)
    assert result.next.startswith("measure with rtgauge: rtgauge run ")
    assert late_share(result.evidence) == "at least 1 in 1,000,000"
    fails = judge(parse_requirement("period=1ms latency<=100us"), item, windows)
    assert answer_words(fails).startswith("at least 1 of 1,000,000 later than 100 us")
    assert not missing(answer_words(fails), "none allowed")


def test_the_next_run_is_longer_than_the_one_that_was_imported(tmp_path: Path):
    source = tmp_path / "hwnoise.txt"
    source.write_text(
        """                                        Hardware-related Noise
duration:   0 00:10:00 | time is in us
CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI
  1 #599       599000000          138    99.99997           3            3           4           74
"""
    )
    record = Record.open(import_file(source, tmp_path / "runs"))
    whole, *_ = judge_run(parse_requirement("gap<=20us"), record)
    assert "--duration 1h" in whole.next
