# SPDX-License-Identifier: MIT
"""`rtgauge sched` from the outside: what it prints and its exit status."""

from __future__ import annotations

import json

import pytest
from tests.support.cli import invoke
from tests.support.published import check_published

TABLE_6 = """
[[task]]
name = "τ1"
period = "10ms"
execution = "3ms"
priority = 99
[[task]]
name = "τ2"
period = "20ms"
execution = "5ms"
priority = 80
[[task]]
name = "τ3"
period = "40ms"
execution = "10ms"
priority = 50
"""
PAIR = (
    '[[task]]\nname = "a"\nperiod = "4ms"\nexecution = "2ms"\ndeadline = "2ms"\n[[task]]\nname = '
    '"b"\nperiod = "4ms"\nexecution = "2ms"\ndeadline = "2ms"\n'
)


def sched(*arguments):
    return invoke("sched", *arguments)


@pytest.fixture(name="file")
def a_file(tmp_path):
    def write(text):
        path = tmp_path / "set.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_the_papers_table_6(file, tmp_path):
    completed = sched(file(TABLE_6), "--json", "--figure", tmp_path / "fig5.svg")
    assert completed.returncode == 0, completed.stderr
    check_published(completed.stdout, "sched")
    document = json.loads(completed.stdout)
    (cpu,) = document["cpus"]
    assert [task["response_ns"] for task in cpu["tasks"]] == [3_000_000, 8_000_000, 29_000_000]
    assert [task["equation_1_ns"] for task in cpu["tasks"]] == [3_000_000, 8_000_000, 29_000_000]
    assert cpu["growth"]["factor"] == 1.25
    assert cpu["hyperperiod_ns"] == 40_000_000
    assert (tmp_path / "fig5.svg").read_bytes().startswith(b"<svg")


@pytest.mark.parametrize(
    ("text", "status", "word"),
    [
        (TABLE_6, 0, "SCHEDULABLE"),
        (PAIR, 1, "NOT SCHEDULABLE"),
        (PAIR + 'offset = "2ms"\n', 4, "CANNOT TELL"),
    ],
)
def test_the_exit_status_is_the_answer(file, text, status, word):
    completed = sched(file(text))
    assert completed.returncode == status, completed.stderr
    assert completed.stdout.splitlines()[0].startswith(f"{word}  ")
    assert completed.stderr == ""


def test_wrong_input_is_one_line(file, tmp_path):
    path = file(TABLE_6)
    for arguments, words in (
        ([], "missing argument"),
        ([tmp_path / "none.toml"], "does not exist"),
        ([path, "--figure", "x.gif"], "must end in .png"),
        ([path, "--figure", tmp_path / "no" / "x.svg"], "cannot be written"),
        ([path, "--jitter-from", tmp_path], "run.json is missing"),
    ):
        completed = sched(*arguments)
        assert completed.returncode == 2, arguments
        assert completed.stderr.startswith("rtgauge: ")
        assert words in completed.stderr
        assert completed.stderr.count("\n") == 1


@pytest.mark.parametrize("text", [TABLE_6, PAIR, PAIR + 'offset = "2ms"\n'])
def test_the_first_line_is_in_the_document(tmp_path, text: str) -> None:
    file = tmp_path / "set.toml"
    file.write_text(text)
    document = json.loads(sched(file, "--json").stdout)
    reported = f"{document['answer'].upper()}  {document['name']}: {document['conclusion']}"
    assert document["conclusion"]
    assert sched(file).stdout.startswith(reported)
