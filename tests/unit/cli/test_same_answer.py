# SPDX-License-Identifier: MIT
"""The first line that a command prints is in its document of --json, under the same words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from rtgauge.cli.decided import GateAnswer
from rtgauge.cli.main import app
from tests.support.archives import own_archive
from tests.unit.verdict.test_gate_record import measured

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).resolve().parents[2] / "data"
FROZEN, KINDS = (DATA / folder / "0.1.0.tar.xz" for folder in ("frozen", "kinds"))


@pytest.fixture(scope="module", name="frozen")
def the_frozen_records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frozen")
    for path, into in ((FROZEN, folder), (KINDS, folder / "0.1.0")):
        with own_archive(path) as archive:
            archive.extractall(into)
    return folder / "0.1.0"


def printed(*words: object) -> str:
    return CliRunner().invoke(app, [str(word) for word in words]).stdout


def of_run(document: dict[str, Any]) -> str:
    verdicts = document["run"]["verdicts"]
    if verdicts:
        assert (verdicts[0]["word"], verdicts[0]["reason"]) == (document["outcome"], document["answer"])
    return f"{(document['outcome'] or '').upper()} {document['answer']}".lstrip()


def of_comparison(document: dict[str, Any]) -> str:
    return f"{document['outcome'].upper()} {document['conclusion']} {document['values'] or ''}"


def of_search(document: dict[str, Any]) -> str:
    return f"{document['outcome'].upper()} {document['conclusion']}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "corpus"), of_run),
        (("show", "corpus", "--require", "period=1ms latency<=200us hardness=99%"), of_run),
        (("show", "corpus", "--require", "gap<=20us"), of_run),
        (("show", "pairs"), of_run),
        *((("show", kind), of_run) for kind in ("run", "watch", "probe", "response", "tire", "import")),
        (("show", "gate"), of_run),
        (("show", "gate", "--require", "latency<=200us hardness=99%"), of_run),
        (("show", "tune"), of_run),
        (("show", "bisect"), of_search),
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


def test_advice_says_the_same_in_both_forms() -> None:
    words = ("advise", "--require", "period=1ms hardness=95%")
    document = json.loads(printed(*words, "--json"))
    assert " ".join(printed(*words).split()).startswith(document["answer"])


@pytest.mark.parametrize(("change", "pairs"), [(17.0, 6), (0.3, 6), (0.0, 12), (0.05, 6)])
def test_a_gate_says_the_same_in_both_forms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: float, pairs: int
) -> None:
    record = measured(tmp_path, change, pairs=pairs)
    answer = GateAnswer.of(record)
    answer.print()
    document = json.loads(answer.result.model_dump_json())
    said = f"{document['outcome'].upper()} {document['conclusion']} {document['values'] or ''}"
    assert " ".join(capsys.readouterr().out.split()).startswith(" ".join(said.split()))


@pytest.mark.parametrize(
    ("kind", "word", "title"), [("gate", "COULD NOT MEASURE", "Gate"), ("tune", "CANNOT TELL", "Tuning")]
)
def test_show_answers_what_the_gate_or_the_tuning_asked(
    frozen: Path, tmp_path: Path, kind: str, word: str, title: str
) -> None:
    assert printed("show", frozen / kind).startswith(word)
    page = tmp_path / "page.html"
    assert printed("show", frozen / kind, "--page", page).startswith(word)
    text = page.read_text()
    assert f"<title>{title}" in text
    assert word.lower() in text.lower()


def test_a_tuning_groups_what_made_it_late_by_mechanism(frozen: Path) -> None:
    shown = " ".join(printed("show", frozen / "tune").split())
    assert (
        "These made it late: the kernel could not be preempted (python, stress-ng-hdd), timer late" in shown
    )
