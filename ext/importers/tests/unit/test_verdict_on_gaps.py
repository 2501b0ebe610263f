# SPDX-License-Identifier: MIT
"""A bound on gaps judges the gaps that other tools found."""

from __future__ import annotations

import pytest

from ext.importers.tests.foreign_files import FILES
from rtgauge.record.model import VerdictWord
from rtgauge.record.reader import Record
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
