# SPDX-License-Identifier: MIT
"""Halves the commits of a Git repository with `git bisect`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from rtgauge.errors import InputError, MeasureError


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
        completed = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={**environment, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
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
