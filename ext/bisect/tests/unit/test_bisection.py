# SPDX-License-Identifier: MIT
"""The search for the first bad commit, in real repositories, with runs whose values are drawn."""

from __future__ import annotations

import math
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rtgauge.errors import InputError, RtgaugeError
from rtgauge_ext.bisect.bisection import BisectionOptions, BisectRun, CommitSearch
from rtgauge_ext.bisect.git_commits import BisectedCommits, GitRepository
from rtgauge_ext.bisect.placing import Placement, Round, error_of_each, place

if TYPE_CHECKING:
    from pathlib import Path

SPREAD = 0.04
COMMITS = 64


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[GitRepository, list[str]]:
    """A repository of 64 commits, and their names, the oldest first."""
    folder = tmp_path_factory.mktemp("history")
    stream = "".join(
        f"commit refs/heads/main\nmark :{number}\ncommitter A <a@b> {1_700_000_000 + number} +0000\n"
        f"data 3\nset\nM 100644 inline setting\ndata {len(str(number))}\n{number}\n"
        for number in range(1, COMMITS + 1)
    )
    subprocess.run(["git", "init", "--quiet", "-b", "main", folder], check=True)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input=stream.encode(), check=True)
    subprocess.run(["git", "reset", "--quiet", "--hard", "main"], cwd=folder, check=True)
    listed = subprocess.run(
        ["git", "rev-list", "--reverse", "main"], cwd=folder, capture_output=True, text=True, check=True
    )
    return GitRepository(folder), listed.stdout.split()


class Runs:
    """Runs of commits of which those from `first_bad` on are slower; `broken` cannot be built."""

    def __init__(
        self,
        names: list[str],
        first_bad: int,
        seed: int,
        *,
        spread: float = SPREAD,
        delay: float = 0.2,
        broken: frozenset[int],
    ) -> None:
        self.names, self.first_bad, self.delay, self.broken = names, first_bad, delay, broken
        self.spread = spread
        self.random = np.random.default_rng(seed)
        self.booted: list[str] = []

    def measure(self, commit: str, _why: str) -> BisectRun:
        self.booted.append(commit)
        number = self.names.index(commit)
        if number in self.broken:
            return BisectRun(commit=commit, value_ns=None, why_not="make: status 2")
        drift = 1 + 0.1 * math.sin(len(self.booted) / 20)
        value_ns = 50_000 * drift * math.exp(self.random.normal(0, self.spread))
        return BisectRun(commit=commit, value_ns=value_ns * (1 + self.delay * (number >= self.first_bad)))


def options_for(names: list[str], seed: int) -> BisectionOptions:
    return BisectionOptions(
        repository="here", before="main", good=names[0], bad=names[-1], command=["true"], seed=seed
    )


def search(repository: GitRepository, names: list[str], runs: Runs, seed: int) -> CommitSearch:
    options = options_for(names, seed)
    return CommitSearch(
        options, BisectedCommits(repository, names[0], names[-1]), runs.measure, lambda _: None
    )


class Halved:
    """Commits in a row, halved as `git bisect` does, without a repository: a search is quicker by seconds."""

    def __init__(self, names: list[str]) -> None:
        self.names, self.low, self.high = names, 0, len(names) - 1

    def count(self) -> int:
        return self.high - self.low

    def next(self) -> str | None:
        return self.names[(self.low + self.high) // 2] if self.count() > 1 else None

    def mark(self, commit: str, word: str) -> None:
        if word == "good":
            self.low = self.names.index(commit)
        else:
            self.high = self.names.index(commit)

    def first_bad(self) -> list[str]:
        return [self.names[self.high]]


def test_a_20_percent_commit_of_64_is_found_in_20_of_20_searches() -> None:
    names = [f"{number:040x}" for number in range(COMMITS)]
    boots: list[int] = []
    for seed in range(20):
        first_bad = 1 + (seed * 37) % (COMMITS - 1)
        runs = Runs(names, first_bad, seed, broken=frozenset())
        options = options_for(names, seed)
        result = CommitSearch(options, Halved(names), runs.measure, lambda _: None).result()
        assert list(result.first_bad) == [names[first_bad]]
        boots.append(len(runs.booted))
    assert sum(boots) / len(boots) <= 12 + 3 * 3 * 6  # three rounds for each of six decisions


def test_git_bisect_leads_to_the_same_commit(history: tuple[GitRepository, list[str]]) -> None:
    repository, names = history
    runs = Runs(names, 23, 3, broken=frozenset())
    result = search(repository, names, runs, 3).result()
    assert list(result.first_bad) == [names[23]]
    assert not result.skipped
    repository.put_back("main")
    assert repository.here() == "main"
    assert not repository.is_searched()


def test_commits_that_cannot_be_built_are_skipped_and_named(
    history: tuple[GitRepository, list[str]],
) -> None:
    repository, names = history
    runs = Runs(names, 20, 1, broken=frozenset({18, 19, 20, 40}))
    result = search(repository, names, runs, 1).result()
    repository.put_back("main")
    assert set(result.first_bad) == set(names[18:22])
    assert {names.index(commit) for commit in result.skipped} >= {18, 19, 20}
    assert set(result.skipped.values()) == {"make: status 2"}


def test_ends_that_do_not_differ_are_no_search(history: tuple[GitRepository, list[str]]) -> None:
    repository, names = history
    runs = Runs(names, 20, 2, delay=0.0, broken=frozenset())
    with pytest.raises(RtgaugeError, match="the ends do not differ enough") as raised:
        search(repository, names, runs, 2).result()
    repository.put_back("main")
    assert raised.value.status == 4
    assert len(set(runs.booted)) == 2


def test_a_search_in_another_search_or_without_a_way_is_refused(
    history: tuple[GitRepository, list[str]], tmp_path: Path
) -> None:
    repository, names = history
    with pytest.raises(InputError, match="not an ancestor"):
        repository.check(names[-1], names[0])
    with pytest.raises(InputError, match="is not a commit"):
        repository.commit("nowhere", "--good")
    with pytest.raises(InputError, match="not in a Git repository"):
        GitRepository(tmp_path)
    subprocess.run(
        ["git", "bisect", "start", names[-1], names[0]],
        cwd=repository.folder,
        check=True,
        capture_output=True,
    )
    with pytest.raises(InputError, match="a git bisect is under way"):
        repository.check(names[0], names[-1])
    repository.put_back("main")
    (repository.folder / "setting").write_text("changed")
    with pytest.raises(InputError, match="uncommitted"):
        repository.check(names[0], names[-1])
    (repository.folder / "setting").write_text(str(COMMITS))
    repository.check(names[0], names[-1])


def test_one_of_fifty_searches_may_end_wrong() -> None:
    """The chance of a wrong place keeps its bound, for a commit that is like an end."""
    random = np.random.default_rng(7)
    error, wrong, tries = 0.02, 0, 2000
    for _ in range(tries):
        values = np.exp(random.normal((0.0, 0.2), 0.1, (6, 2)))
        rounds: list[Round] = []
        actual = Placement.OPEN
        while actual is Placement.OPEN:
            rounds.append(Round(*np.exp(random.normal((0.0, 0.0, 0.2), 0.1))))
            actual = place([(good, bad) for good, bad in values], rounds, error)
        wrong += actual is Placement.BAD
    assert wrong <= 0.035 * tries  # the estimated change and spread cost something
    assert error_of_each(64) == pytest.approx(0.0185 / 7)


def test_a_commit_between_indistinguishable_ends_is_like_neither() -> None:
    ends = [(50_000.0, 60_000.0)] * 6
    halfway = Round(math.sqrt(50_000.0 * 60_000.0), 50_000.0, 60_000.0)
    assert place(ends, [halfway] * 11, 0.003) is Placement.OPEN
    assert place(ends, [halfway] * 12, 0.003) is Placement.BETWEEN
    assert place(ends, [Round(50_000.0, 50_000.0, 60_000.0)], 0.003) is Placement.GOOD
    assert place(ends, [Round(60_000.0, 50_000.0, 60_000.0)], 0.003) is Placement.BAD
