# SPDX-License-Identifier: MIT
"""Checks out the commits of a Git repository, and halves them with `git bisect`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from rtgauge.errors import InputError, MeasureError
from rtgauge.program_run import run_program


class GitError(MeasureError):
    """A git command failed."""


class GitRepository:
    """A clone that checks out commits one after the other."""

    def __init__(self, folder: Path) -> None:
        """Open the repository that contains `folder`. Raises InputError if there is none."""
        if shutil.which("git") is None:
            raise InputError("git is not installed")
        self.folder = folder
        try:
            self.folder = Path(self.git("rev-parse", "--show-toplevel"))
        except (GitError, OSError):
            raise InputError(f"{folder} is not in a Git repository; name one with --repository") from None

    def git(self, *words: str) -> str:
        """Run a git command and return its output. Raises GitError if it fails."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        completed = run_program(
            ["git", *words], folder=self.folder, environment={**environment, "LC_ALL": "C"}
        )
        if completed.returncode != 0:
            lines = completed.stderr.strip().splitlines() or [f"status {completed.returncode}"]
            raise GitError(f"git {words[0]}: {lines[-1]}")
        return completed.stdout.strip()

    def commit(self, name: str, option: str) -> str:
        """Return the full hash of the commit `name`. Raises InputError, which names `option`, if there is no
        such commit.
        """
        try:
            return self.git("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
        except GitError:
            raise InputError(
                f"{option} {name} is not a commit of the repository {self.folder}; name one with "
                "a hash, tag or branch"
            ) from None

    def check(self, good: str, bad: str) -> None:
        """Raise InputError if files are changed, another bisect is running, or `good` is not an ancestor of
        `bad`.
        """
        if self.git("status", "--porcelain", "--untracked-files=no"):
            raise InputError(f"{self.folder} has uncommitted changes; commit or remove them first")
        if self.is_searched():
            raise InputError(f"a git bisect is under way in {self.folder}; end it first: git bisect reset")
        if good == bad or self.git("merge-base", good, bad) != good:
            raise InputError(
                "the good commit is not an ancestor of the bad one; name two commits of one line of history"
            )

    def is_searched(self) -> bool:
        """Return whether a `git bisect` is running."""
        return bool(self.git("for-each-ref", "refs/bisect"))

    def here(self) -> str:
        """Return the checked-out branch or commit."""
        try:
            return self.git("symbolic-ref", "--short", "HEAD")
        except GitError:
            return self.git("rev-parse", "HEAD")

    def check_out(self, commit: str) -> None:
        """Check out a commit; untracked files stay. Raises GitError."""
        self.git("checkout", "--quiet", "--detach", commit)

    def put_back(self, before: str) -> None:
        """End the bisect, and check out `before`."""
        self.git("bisect", "reset")
        self.git("checkout", "--quiet", before)

    def subject(self, commit: str) -> str:
        """Return the first line of a commit's message."""
        return self.git("show", "--no-patch", "--format=%s", commit)


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
