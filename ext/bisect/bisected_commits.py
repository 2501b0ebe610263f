# SPDX-License-Identifier: MIT
"""Runs `git bisect` without checking anything out."""

from __future__ import annotations

from rtgauge_ext.bisect.git_commits import GitError, GitRepository


class BisectedCommits:
    """A new `git bisect` that checks nothing out, because runs of the ends come between its commits."""

    def __init__(self, repository: GitRepository, good: str, bad: str) -> None:
        self._git = repository.git
        self._git("bisect", "reset")
        self._git("bisect", "start", "--no-checkout", bad, good)

    def _open(self) -> list[str]:
        """Return the commits that may be the first bad one, newest first."""
        goods = self._git("for-each-ref", "--format=%(objectname)", "refs/bisect/good-*").split()
        return self._git("rev-list", "refs/bisect/bad", "--not", *goods).split()

    def count(self) -> int:
        """Return how many commits may be the first bad one."""
        return len(self._open())

    def next(self) -> str | None:
        """Return the commit to test next; None if none is left."""
        skipped = set(self._git("for-each-ref", "--format=%(objectname)", "refs/bisect/skip-*").split())
        left = [commit for commit in self._open()[1:] if commit not in skipped]
        return self._git("rev-parse", "BISECT_HEAD") if left else None

    def mark(self, commit: str, word: str) -> None:
        """Mark a commit; `word` is good, bad or skip."""
        try:
            self._git("bisect", word, commit)
        except GitError:
            if self.next() is not None:
                raise  # git also fails if only skipped commits are left

    def first_bad(self) -> list[str]:
        """Return the first bad commit, or if that is unclear, all candidates."""
        return self._open()
