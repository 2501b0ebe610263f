# SPDX-License-Identifier: MIT
"""A search is continued only in a folder that nobody else could have changed, because it names a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.support.messages import missing

from rtgauge.analysis.gate_options import GateOptions
from rtgauge.analysis.gate_test import Decision, Outcome
from rtgauge.cli.main import main
from rtgauge.errors import InputError, RecordError, RtgaugeError
from rtgauge.plan.make_plan import Overrides
from rtgauge_ext.bisect.bisect_search import (
    LOG,
    STATE,
    BisectState,
    give_more_pairs,
    kept_search,
    run_search,
    show_search,
)
from rtgauge_ext.bisect.bisection import BisectionOptions, BisectResult, BisectRun, CommitSearch
from rtgauge_ext.bisect.git_commits import GitRepository

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with two commits."""
    folder = tmp_path / "clone"
    folder.mkdir()
    for words in (
        ["init", "--quiet", "--initial-branch=main"],
        ["config", "user.email", "a@b"],
        ["config", "user.name", "a"],
        ["commit", "--quiet", "--allow-empty", "-m", "one"],
        ["commit", "--quiet", "--allow-empty", "-m", "two"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def search(clone: Path, command: list[str]) -> BisectState:
    repository = GitRepository(clone)
    good, bad = repository.git("rev-parse", "main~1"), repository.git("rev-parse", "main")
    return BisectState(
        options=BisectionOptions(
            repository=str(clone), before="main", good=good, bad=bad, command=command, seed=1
        ),
        decides=GateOptions(larger_than=0.1, max_pairs=12),
        plan="quick",
        overrides=Overrides(loads=["idle"]),
    )


@pytest.fixture
def folder(tmp_path: Path, clone: Path) -> Path:
    """A folder with a search, whose command leaves a file behind."""
    place = tmp_path / "search"
    place.mkdir(0o755)
    state = search(clone, ["touch", str(tmp_path / "was-run")])
    (place / STATE).write_text(state.model_dump_json())
    return place


def test_ones_own_search_is_read(folder: Path) -> None:
    assert kept_search(folder).plan == "quick"


@pytest.mark.parametrize("left", [1, 2])
def test_show_says_what_the_search_found(
    folder: Path, clone: Path, left: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=r"not ended .*rtgauge resume"):
        show_search(folder, json=False)
    commits = [kept_search(folder).options.bad, kept_search(folder).options.good][:left]
    ends = Decision(Outcome.WORSE, 6, 0.5, 0.4, 0.6, 0.03)
    monkeypatch.setattr(CommitSearch, "result", lambda _: BisectResult(commits, ends, {}, {}))
    run_search(folder, kept_search(folder), 0, fresh=False, json=False)
    stdout = capsys.readouterr().out
    show_search(folder, json=False)
    assert capsys.readouterr().out == stdout
    show_search(folder, json=True)
    document = json.loads(capsys.readouterr().out)
    assert stdout.startswith(f"{document['outcome'].upper()}  {document['conclusion']}\n")
    assert stdout.startswith(f"FIRST BAD  {commits[0][:12]} two\n" if left == 1 else "ONE OF SEVERAL ")
    assert all(commit[:12] in stdout for commit in commits)


def test_more_pairs_of_ends_only_until_they_are_known_to_differ(clone: Path) -> None:
    state = search(clone, ["true"])
    with pytest.raises(InputError, match="less than the 12 of this search"):
        give_more_pairs(state, 6)
    state.runs.append(BisectRun(commit=state.options.good, value_ns=1.0))
    give_more_pairs(state, 24)
    assert (state.options.max_pairs, state.options.extended_from) == (24, (12,))
    state.runs.append(BisectRun(commit="another", value_ns=1.0))
    with pytest.raises(InputError, match="already knows that the ends differ"):
        give_more_pairs(state, 48)


@pytest.mark.parametrize("words", ["--good main", "--load idle", "--plan standard", "-- touch was-run"])
def test_resume_refuses_what_changes_the_question(folder: Path, words: str, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", f"rtgauge resume {folder} {words}".split())
    monkeypatch.setattr("rtgauge.cli.main.make_patient", lambda: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    option, line = words.split(maxsplit=1)[0], capsys.readouterr().err
    if option == "--":
        assert "unexpected" in line
        return
    assert f"{option}: rtgauge resume" in line
    assert not missing(line, "p99.9 of wakeup latency under idle", "10 % larger", "12 pairs", "commits")


def test_resume_refuses_what_is_not_for_a_bisection(folder: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", f"rtgauge resume {folder} --junit gate.xml".split())
    monkeypatch.setattr("rtgauge.cli.main.make_patient", lambda: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert not missing(capsys.readouterr().err, "rtgauge resume", "leave out --junit", "bisection")


@pytest.mark.root
@pytest.mark.parametrize("name", ["", STATE])
def test_a_search_of_another_user_is_refused(folder: Path, name: str) -> None:
    os.chown(folder / name, 65534, 65534)
    with pytest.raises(InputError, match="belongs to another user"):
        kept_search(folder)


@pytest.mark.parametrize("name", ["", STATE])
def test_a_search_that_others_can_change_is_refused(folder: Path, name: str) -> None:
    (folder / name).chmod(0o777)
    with pytest.raises(InputError, match="others can write to it"):
        kept_search(folder)


def test_a_pipe_a_link_and_too_much_are_refused_at_once(folder: Path) -> None:
    state = folder / STATE
    state.unlink()
    os.mkfifo(state)
    with pytest.raises(InputError, match="not a regular file"):
        kept_search(folder)
    state.unlink()
    state.symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="it is a link"):
        kept_search(folder)
    state.unlink()
    with state.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="larger than"):
        kept_search(folder)
    state.write_bytes(b"[" * 100_000)
    with pytest.raises(RecordError, match="is damaged"):
        kept_search(folder)


def test_the_log_follows_no_link(folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (folder / LOG).symlink_to(victim)
    with pytest.raises(RtgaugeError, match="it is a link"):
        run_search(folder, kept_search(folder), 0, fresh=False, json=False)
    assert victim.read_text() == "precious"
    assert not (tmp_path / "was-run").exists()


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(RtgaugeError, match="link"):
        kept_search(link)
