# SPDX-License-Identifier: MIT
"""Reads a fleet's plan, a TOML file with the boards and the jobs of each board."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rtgauge.errors import InputError
from rtgauge.input_file import read_toml
from rtgauge.record.alternation import BLOCK, MOST_PAIRS
from rtgauge.validation import explain
from rtgauge_ext.store.database import place_of

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Word = Annotated[str, Field(pattern=r"^[^-\s][^\x00\n]*$")]
"""The value of an option, which cannot begin with a hyphen."""


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, alias_generator=lambda name: name.replace("_", "-")
    )


ASIDE = "put-aside.txt"
"""The file in a board's folder that says why the board was put aside."""
IMAGE = "{image}"
"""The placeholder of the image's name in a board's target."""


class BoardImage(_Part):
    """The software of a board. `kernel`: a pattern for the kernel's release. Another kernel is a failure."""

    name: Name
    kernel: Word | None = None


class Board(_Part):
    """A machine. `name`: its name in the store and the fleet's folder. `tags`: the words by which jobs choose
    it.

    With `{image}` in the target, a board runs its jobs once with each image. `image`: the board's only image.
    """

    name: Name
    target: Word
    tags: list[Name] = Field(default_factory=list[str])
    image: Name | None = None

    @property
    def has_every_image(self) -> bool:
        """Whether the board's target depends on the image."""
        return IMAGE in self.target


class Job(_Part):
    """A run or, with `baseline` and `candidate`, a gate. `tags`: the job runs only on boards with all these
    tags.

    `images`: the job runs only with these images.
    """

    name: Name
    images: list[Name] = Field(default_factory=list[str])
    plan: Word = "quick"
    tags: list[Name] = Field(default_factory=list[str])
    duration: Word | None = None
    load: Word | None = None
    require: Word | None = None
    baseline: Word | None = None
    candidate: Word | None = None
    max_pairs: int | None = Field(default=None, ge=BLOCK, le=MOST_PAIRS)
    boot: Literal["each-run"] | None = None
    pause_between: Word | None = None

    @property
    def is_gate(self) -> bool:
        """Whether the job compares two sides."""
        return self.baseline is not None

    def words(self, target: str) -> list[str]:
        """Return the command for a board, without the options for the record's folder."""
        options = {
            "--target": target, "--duration": self.duration, "--load": self.load, "--require": self.require,
            "--baseline": self.baseline, "--candidate": self.candidate, "--max-pairs": self.max_pairs,
            "--pause-between": self.pause_between, "--boot": self.boot,
        }  # fmt: skip
        words = ["gate" if self.is_gate else "run", self.plan]
        return [*words, *(f"{name}={value}" for name, value in options.items() if value is not None)]


@dataclass(frozen=True)
class BoardTask:
    """A job of a board, with an image if the plan has images."""

    board: Board
    job: Job
    image: BoardImage | None

    @property
    def name(self) -> str:
        """The name of the task's folder in the board's folder, which lines of progress also show."""
        several = self.image is not None and self.board.has_every_image
        return f"{self.job.name}-{self.image.name}" if several and self.image else self.job.name

    @property
    def words(self) -> list[str]:
        """Return the command without the options for the record's folder."""
        image = "" if self.image is None else self.image.name
        return self.job.words(self.board.target.replace(IMAGE, image))


class FleetPlan(_Part):
    """The contents of a plan. `tries`: the number of failures in a row after which a board is put aside.
    `site`: the folder of pages.
    """

    boards: list[Board] = Field(min_length=1, max_length=10_000)
    jobs: list[Job] = Field(min_length=1, max_length=1000)
    images: list[BoardImage] = Field(default_factory=list[BoardImage], max_length=1000)
    store: str | None = None
    site: str | None = None
    at_once: int = Field(default=4, ge=1, le=256)
    tries: int = Field(default=3, ge=1, le=100)

    def tasks(self, board: Board) -> list[BoardTask]:
        """Return the board's tasks in order: one job after the other, each with all its images."""
        images = [each for each in self.images if board.has_every_image or each.name == board.image]
        return [
            BoardTask(board, job, image)
            for job in self.jobs
            if set(job.tags) <= set(board.tags)
            for image in images or [None]
            if not job.images or (image is not None and image.name in job.images)
        ]

    @classmethod
    def read(cls, path: Path) -> FleetPlan:
        """Read a plan. Raises InputError with the place of an error in the file."""
        try:
            plan = cls.model_validate(read_toml(path, str(path)))
        except ValidationError as error:
            if error.errors()[0]["loc"] == ("archive",):
                raise InputError(
                    f"{path}: the key archive no longer exists; remove it, and collect the records with "
                    "rsync (ext/store/README.md)"
                ) from None
            raise explain(error, str(path), []) from None
        for what, named in (("board", plan.boards), ("job", plan.jobs), ("image", plan.images)):
            names = Counter(each.name for each in named)
            twice = [name for name, number in names.items() if number > 1]
            if twice:
                raise InputError(f"{path}: two {what}s are called {twice[0]}; rename one of them")
        if plan.store is not None:
            place_of(plan.store)
        known = {image.name for image in plan.images}
        for who, named in (
            *((f"board {board.name}", [board.image] if board.image else []) for board in plan.boards),
            *((f"job {job.name}", job.images) for job in plan.jobs),
        ):
            if not set(named) <= known:
                raise InputError(
                    f"{path}: {who} names the image {min(set(named) - known)}, which the plan does not list"
                )
        for board in plan.boards:
            if board.has_every_image and (board.image or not plan.images):
                raise InputError(
                    f"{path}: board {board.name}: in its target, {IMAGE} stands for each image of the plan; "
                    "list the images in the plan, and leave out the board's image"
                )
            names = [task.name for task in plan.tasks(board)]
            if ASIDE in names:
                raise InputError(
                    f"{path}: board {board.name} has a job {ASIDE}, but rtgauge has a file of this name; "
                    f"rename the job"
                )
            if len(set(names)) < len(names):
                raise InputError(
                    f"{path}: board {board.name} has two jobs with the same name "
                    f"({', '.join(sorted(names))}); rename one of them"
                )
        if plan.site is not None and plan.store is None:
            raise InputError(f"{path}: a site needs a store; name one with the key store")
        for job in plan.jobs:
            single_side = (job.baseline is None) != (job.candidate is None)
            of_gates = job.max_pairs or job.pause_between
            if single_side or (job.is_gate and job.require) or (of_gates and not job.is_gate):
                raise InputError(
                    f"{path}: job {job.name}: a gate needs baseline and candidate, and does not take "
                    f"require; only a gate takes max-pairs and pause-between"
                )
            if not any(set(job.tags) <= set(board.tags) for board in plan.boards):
                raise InputError(
                    f"{path}: job {job.name} cannot run, because none of the boards has the tags "
                    f"{', '.join(job.tags)}"
                )
            if not any(task.job is job for board in plan.boards for task in plan.tasks(board)):
                raise InputError(
                    f"{path}: job {job.name} cannot run, because none of the boards has the images "
                    f"{', '.join(job.images)}"
                )
        return plan
