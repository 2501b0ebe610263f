# SPDX-License-Identifier: MIT
"""The commits of a Git repository, halved by `git bisect`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from rtgauge.errors import InputError, MeasureError


class GitError(MeasureError):
    """git refused."""


class GitRepository:
    """A clone whose commits are checked out one after the other."""

    def __init__(self, folder: Path) -> None:
        """Raises InputError if there is no repository."""
        if shutil.which("git") is None:
            raise InputError("git is not installed")
        self.folder = folder
        try:
            self.folder = Path(self.git("rev-parse", "--show-toplevel"))
        except (GitError, OSError):
            raise InputError(f"{folder} is not in a Git repository; name one with --repository") from None

    def git(self, *words: str) -> str:
        """What a git command prints. Raises GitError."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={**environment, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
            raise GitError(f"git {words[0]}: {lines[-1]}")
        return done.stdout.strip()

    def commit(self, name: str, option: str) -> str:
        """The whole name of a commit. Raises InputError."""
        try:
            return self.git("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
        except GitError:
            raise InputError(f"{option} {name} is not a commit of {self.folder}") from None

    def check(self, good: str, bad: str) -> None:
        """Raises InputError if nothing can be searched here: changed files, another search, or no way from
        `good` to `bad`.
        """
        if self.git("status", "--porcelain", "--untracked-files=no"):
            raise InputError(f"{self.folder} has changes that are not committed; commit or remove them first")
        if self.is_searched():
            raise InputError(f"a git bisect is under way in {self.folder}; end it first: git bisect reset")
        if good == bad or self.git("merge-base", good, bad) != good:
            raise InputError("the good commit is not an ancestor of the bad one")

    def is_searched(self) -> bool:
        """Whether a `git bisect` is under way."""
        return bool(self.git("for-each-ref", "refs/bisect"))

    def here(self) -> str:
        """What is checked out: a branch, or a commit."""
        try:
            return self.git("symbolic-ref", "--short", "HEAD")
        except GitError:
            return self.git("rev-parse", "HEAD")

    def check_out(self, commit: str) -> None:
        """Files that are not tracked stay. Raises GitError."""
        self.git("checkout", "--quiet", "--detach", commit)

    def put_back(self, before: str) -> None:
        """End the search, and check out what was before it."""
        self.git("bisect", "reset")
        self.git("checkout", "--quiet", before)

    def subject(self, commit: str) -> str:
        """The first line of its message."""
        return self.git("show", "--no-patch", "--format=%s", commit)


class BisectedCommits:
    """A `git bisect` that is begun anew. It checks nothing out: ends are measured between."""

    def __init__(self, repository: GitRepository, good: str, bad: str) -> None:
        self._git = repository.git
        self._git("bisect", "reset")
        self._git("bisect", "start", "--no-checkout", bad, good)

    def _open(self) -> list[str]:
        """The commits that may be the first bad one, the last of them first."""
        goods = self._git("for-each-ref", "--format=%(objectname)", "refs/bisect/good-*").split()
        return self._git("rev-list", "refs/bisect/bad", "--not", *goods).split()

    def count(self) -> int:
        """How many may be the first bad one."""
        return len(self._open())

    def next(self) -> str | None:
        """The commit that halves the others; None: nothing is left to place."""
        skipped = set(self._git("for-each-ref", "--format=%(objectname)", "refs/bisect/skip-*").split())
        left = [commit for commit in self._open()[1:] if commit not in skipped]
        return self._git("rev-parse", "BISECT_HEAD") if left else None

    def mark(self, commit: str, word: str) -> None:
        """`word`: good, bad or skip."""
        try:
            self._git("bisect", word, commit)
        except GitError:
            if self.next() is not None:
                raise  # it also fails once only skipped commits are left

    def first_bad(self) -> list[str]:
        """The first bad commit, or all that may be it."""
        return self._open()
