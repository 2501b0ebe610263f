# SPDX-License-Identifier: MIT
"""The first line that a command prints is in its document of --json, under the same words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rtgauge.cli.decided import GateAnswer
from tests.support.kept_records import of_run, printed
from tests.unit.verdict.test_gate_record import measured

if TYPE_CHECKING:
    from collections.abc import Callable


def of_comparison(document: dict[str, Any]) -> str:
    return f"{document['outcome'].upper()} {document['conclusion']} {document['values'] or ''}"


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("show", "corpus"), of_run),
        (("show", "corpus", "--require", "period=1ms latency<=200us hardness=99%"), of_run),
        (("show", "corpus", "--require", "gap<=20us"), of_run),
        (("show", "pairs"), of_run),
        *((("show", kind), of_run) for kind in ("run", "watch", "probe", "response", "tire", "import")),
        (("show", "gate"), of_run),
        (("show", "gate", "--require", "latency<=200us hardness=99%"), of_run),
        (("compare", "pairs"), of_comparison),
    ],
)
def test_a_record_and_a_comparison_say_the_same_in_both_forms(
    kept_records: Path, words: tuple[str, ...], reported: Callable[[dict[str, Any]], str]
) -> None:
    command, record, *rest = words
    text = printed(command, kept_records / record, *rest)
    answer = reported(json.loads(printed(command, kept_records / record, *rest, "--json")))
    assert answer
    assert " ".join(text.split()).startswith(" ".join(answer.split()))


@pytest.mark.parametrize(("change", "pairs"), [(17.0, 6), (0.3, 6), (0.0, 12), (0.05, 6)])
def test_a_gate_says_the_same_in_both_forms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: float, pairs: int
) -> None:
    record = measured(tmp_path, change, pairs=pairs)
    answer = GateAnswer.of(record)
    answer.print()
    document = json.loads(answer.result.model_dump_json())
    reported = f"{document['outcome'].upper()} {document['conclusion']} {document['values'] or ''}"
    assert " ".join(capsys.readouterr().out.split()).startswith(" ".join(reported.split()))


def test_show_prints_the_result_of_a_gate(kept_records: Path, tmp_path: Path) -> None:
    assert printed("show", kept_records / "gate").startswith("COULD NOT MEASURE")
    page = tmp_path / "page.html"
    assert printed("show", kept_records / "gate", "--page", page).startswith("COULD NOT MEASURE")
    text = page.read_text()
    assert "<title>Gate" in text
    assert "could not measure" in text.lower()
