# SPDX-License-Identifier: MIT
"""The first line that a command prints is in its document of --json, under the same words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from rtgauge.cli import gate as gate_command
from rtgauge.cli import tune as tune_command
from rtgauge.cli.main import app
from rtgauge.tune.result import TuneResult
from rtgauge.verdict.gate_result import GateResult
from tests.support.archives import own_archive
from tests.unit.tune.test_study import MINUTE_NS, planned, simulated
from tests.unit.verdict.test_gate_record import measured

if TYPE_CHECKING:
    from collections.abc import Callable

FROZEN = Path(__file__).resolve().parents[2] / "data" / "frozen" / "0.1.0.tar.xz"


@pytest.fixture(scope="module", name="frozen")
def the_frozen_records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frozen")
    with own_archive(FROZEN) as archive:
        archive.extractall(folder)
    return folder / "0.1.0"


def printed(*words: object) -> str:
    return CliRunner().invoke(app, [str(word) for word in words]).stdout


def of_run(document: dict[str, Any]) -> str:
    verdicts = document["run"]["verdicts"]
    word = f"{verdicts[0]['word'].upper()} " if verdicts else ""
    assert not verdicts or verdicts[0]["reason"] == document["answer"]
    return word + document["answer"]


def of_comparison(document: dict[str, Any]) -> str:
    return f"{document['outcome'].upper()} {document['conclusion']} {document['values'] or ''}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "corpus"), of_run),
        (("show", "corpus", "--require", "period=1ms latency<=200us hardness=99%"), of_run),
        (("show", "corpus", "--require", "gap<=20us"), of_run),
        (("show", "pairs"), of_run),
        (("compare", "pairs"), of_comparison),
    ],
)
def test_a_record_and_a_comparison_say_the_same_in_both_forms(
    frozen: Path, words: tuple[str, ...], said: Callable[[dict[str, Any]], str]
) -> None:
    command, record, *rest = words
    text = printed(command, frozen / record, *rest)
    answer = said(json.loads(printed(command, frozen / record, *rest, "--json")))
    assert answer
    assert " ".join(text.split()).startswith(" ".join(answer.split()))


@pytest.mark.parametrize(("change", "pairs"), [(17.0, 6), (0.3, 6), (0.0, 12), (0.05, 6)])
def test_a_gate_says_the_same_in_both_forms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: float, pairs: int
) -> None:
    record = measured(tmp_path, change, pairs=pairs)
    result = GateResult.of(record)
    gate_command._print(result, record, details=False)
    document = json.loads(result.model_dump_json())
    said = f"{document['outcome'].upper()} {document['conclusion']} {document['values'] or ''}"
    assert " ".join(capsys.readouterr().out.split()).startswith(" ".join(said.split()))


def test_a_tuning_says_the_same_in_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("thp", "ksm", "timer-migration", "numa-balancing")
    record = simulated(
        planned("latency<=100us hardness=50%", *names, budget_ns=8 * MINUTE_NS), mended_by="nothing"
    )
    result = TuneResult.of(record)
    tune_command._print(result, record)
    document = json.loads(result.model_dump_json())
    said = f"{document['outcome'].upper()} {document['conclusion']} next {document['next']}"
    assert " ".join(capsys.readouterr().out.split()).startswith(said)
