# SPDX-License-Identifier: MIT
"""Writes a record's folder (docs/formats/record.md). Each step in it is complete or absent, even after a
crash.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import rtgauge
from rtgauge.errors import InputError, RecordError
from rtgauge.input_file import real_path
from rtgauge.record.facts import Facts
from rtgauge.record.files import check_folder, check_name, check_own, clean_name, clear_errors, sync_folder
from rtgauge.record.model import Run, Step, StepKey
from rtgauge.record.reader import (
    BLOCKS,
    PART,
    PARTIAL,
    RUN,
    STEP_ID,
    SUMS,
    WINDOWS,
    Record,
    described_in,
    read_json,
    read_model,
)
from rtgauge.record.record_folder import RecordFolder, checksum
from rtgauge.units import NS_PER_S

if TYPE_CHECKING:
    from rtgauge.record.windows import Windows

FOLDERS = ("steps", "targets")
FOLDER_MODE = 0o775
"""The widest permissions: even if the umask lets everyone write, only the group may."""
LATER = b"\n--- in a later session\n"
MOST_EARLIER_BYTES = 1 << 20
OWN_FOLDER_MODE = 0o700
"""The mode of a step's folder while it is measured: nobody else can place a link where programs write."""


def record_id(host: str, name: str, now: datetime) -> str:
    """Return an id such as `2026-11-21T10-03-22Z-HOST-NAME-7f3a`. The random suffix separates runs of the
    same second.
    """
    moment = f"{now.astimezone(UTC):%Y-%m-%dT%H-%M-%SZ}"
    return f"{moment}-{clean_name(host)}-{clean_name(name)}-{secrets.token_hex(2)}"


def utc_time(moment: datetime) -> str:
    """Return a time of a record: UTC, ISO 8601, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def wall_time(wall_ns: int) -> str:
    """Return a time of the wall clock as `utc_time` does."""
    return utc_time(datetime.fromtimestamp(wall_ns / NS_PER_S, UTC))


def _bytes(model: Run | Step) -> bytes:
    return (model.model_dump_json(indent=1) + "\n").encode()


def write_page(folder: RecordFolder, name: str, text: str) -> Path:
    """Write an HTML page into an open record; return its path. Raises InputError or MeasureError."""
    with clear_errors(folder.path / name, option="-o", kind="file"):
        folder.write(name, text.encode(errors="replace"))
    return folder.path / name


class RecordWriter:
    """Writes a record.

    `path`: its folder. `id`: its name. `run`: the content of run.json (None before `write_run`).
    `with_windows`: whether the windows of short steps are written; figures do not need them.

    The folder is opened once, and all writes start from there. The parent folder's owner can rename it, but
    cannot redirect the writes.
    """

    def __init__(self, path: Path, record: str, run: Run | None = None, *, with_windows: bool = True) -> None:
        """Open the folder. Raises InputError if it is a link, is missing, or belongs to another user."""
        self.id = record
        self.run = run
        self._with_windows = with_windows
        self._step: RecordFolder | None = None
        """The folder of the step that is being measured."""
        self._at_once = False
        with clear_errors(path):
            self._folder = RecordFolder.open(path, follow=False)
            check_own(self._folder.descriptor)

    @property
    def path(self) -> Path:
        """The record's folder."""
        return self._folder.path

    @property
    def _results(self) -> Path | None:
        """The folder of the results so far, which errors show; None if an error removes the record."""
        return None if self._at_once else self.path

    @staticmethod
    def check_out(out: Path) -> None:
        """Check that a record can be created in `out`. Raises as `create` does."""
        check_name(out.absolute())
        if (out / RUN).exists():
            raise InputError(
                f"{out} is already a record; choose another folder with --out, or continue this record with "
                "rtgauge resume"
            )
        check_folder(out)

    @classmethod
    def create(
        cls, out: Path, *, host: str, name: str, now: datetime | None = None, with_windows: bool = True
    ) -> RecordWriter:
        """Create `<out>/<id>.partial`. `name`: the plan's or tool's name.

        Raises InputError if `out` is a record, is not a folder or is not writable, and MeasureError if the
        disk is full.
        """
        cls.check_out(out)
        record = record_id(host, name, now or datetime.now(UTC))
        path = out / (record + PARTIAL)
        with clear_errors(out):
            out.mkdir(parents=True, exist_ok=True)
            path.mkdir(FOLDER_MODE)
            writer = cls(path, record, with_windows=with_windows)
            for part in FOLDERS:
                writer._folder.make_folder(part, FOLDER_MODE)
            writer._folder.sync()
            sync_folder(out)
        return writer

    @classmethod
    @contextmanager
    def at_once(
        cls,
        out: Path,
        target: str,
        facts: Facts | None,
        planned: list[StepKey],
        *,
        command: list[str],
        plan: dict[str, Any],
        requirement: str | None = None,
    ) -> Generator[RecordWriter]:
        """Like `create`, for a record of one target whose content is already known. It is complete when the
        context ends; an error leaves nothing behind. `planned`, `command`, `plan` and `requirement` go into
        the run; `plan` has a name. Raises what `create` and `finish` raise.
        """
        now = datetime.now(UTC)
        host = (facts.host if facts is not None else None) or "unknown"
        writer = cls.create(out, host=host, name=plan["name"], now=now)
        writer._at_once = True
        try:
            writer.write_run(
                Run(
                    id=writer.id,
                    created=utc_time(now),
                    state="partial",
                    rtgauge=rtgauge.__version__,
                    command=command,
                    plan=plan,
                    targets=[target],
                    requirement=requirement,
                    planned=planned,
                )
            )
            if facts is not None:
                writer.write_system(target, facts)
            yield writer
            writer.finish("complete")
        except BaseException:
            with suppress(OSError):
                for entry in writer._folder.names():
                    writer._folder.remove(entry)
                writer.path.rmdir()
            raise

    @classmethod
    def open_partial(cls, path: Path, *, complete: bool = False) -> RecordWriter:
        """Continue an unfinished record, or with `complete` a complete one: its `run` lists the finished
        steps, and half-written ones are removed.

        An ended record gets its `.partial` suffix back. Raises RecordError for a damaged record, and
        InputError for a complete record without `complete`, or one that another user can change.
        """
        path = real_path(path) if path.is_symlink() else path
        if not (path / RUN).is_file():
            raise RecordError(f"{path} cannot be resumed, because it is not a record (run.json is missing)")
        with clear_errors(path):
            writer = cls(path, "")
            folder = writer._folder
            run = read_model(folder.file(RUN), Run)
            writer.id = run.id
            if run.state == "complete" and not complete:
                raise InputError(f"{path} is complete, so there is nothing to resume")
            for name in FOLDERS:
                with suppress(FileExistsError):  # `check_folders` reports a link
                    folder.make_folder(name, FOLDER_MODE)
            writer.check_folders()
            if not path.name.endswith(PARTIAL):
                folder.path = path.rename(path.with_name(path.name + PARTIAL))
            leftovers = [*(f"steps/{name}" for name in folder.names("steps")), *folder.names()]
            for leftover in leftovers:
                if leftover.endswith(".tmp") and leftover.rpartition("/")[2].startswith("."):
                    folder.remove(leftover)
            folder.sync("steps")
            # These steps were complete before run.json could list them.
            unlisted = [
                name
                for name in folder.names("steps")
                if name not in run.steps and folder.has(f"steps/{name}/step.json")
            ]
        for step in run.steps:
            read_model(folder.file(f"steps/{step}/step.json"), Step)
        added = [read_model(folder.file(f"steps/{name}/step.json"), Step).id for name in unlisted]
        writer.write_run(
            run.model_copy(update={"steps": [*run.steps, *added], "state": "partial", "ended": None})
        )
        return writer

    def check_folders(self) -> None:
        """Check that this user owns all folders, and that only this user or the group can write. Raises
        InputError. A record that another user could change must not even choose the targets to connect to.
        """
        about = os.fstat(self._folder.descriptor)
        owner, owners = about.st_uid, about.st_uid == os.geteuid()
        stat_by_path = {str(self.path): about}
        for name in filter(self._folder.has, FOLDERS):
            stat_by_path[str(self.path / name)] = self._folder.about(name)
            if stat.S_ISDIR(stat_by_path[str(self.path / name)].st_mode):
                stat_by_path |= {
                    str(self.path / name / entry): self._folder.about(f"{name}/{entry}")
                    for entry in self._folder.names(name)
                }
        for folder, about in stat_by_path.items():
            if stat.S_ISREG(about.st_mode):
                continue
            if (
                not stat.S_ISDIR(about.st_mode)
                or about.st_uid != owner
                or (owners and about.st_mode & stat.S_IWOTH)
            ):
                raise InputError(
                    f"{folder} cannot be resumed, because it is a link, belongs to another user, or anyone "
                    "can write to it; start a new run, or make the folder yours and writable only by you"
                )

    def record(self) -> Record:
        """Return the record as written up to now. Raises RecordError."""
        return Record.of(self._folder)

    def write_run(self, run: Run) -> None:
        """Write run.json atomically, and the checksums of the JSON files if the record is complete.

        Raises InputError or MeasureError. A kill leaves a record with correct checksums or with none.
        """
        with clear_errors(self.path / SUMS, self._results):
            self._folder.remove(SUMS, missing_ok=True)
        self.write_log(RUN, _bytes(run))
        self.run = run
        if run.state == "complete":
            with clear_errors(self.path, self._results):
                sums = {name: checksum(self._folder.file(name)) for name in described_in(self._folder)}
            self.write_log(SUMS, "".join(f"{sums[name]}  {name}\n" for name in sums).encode())

    def _target(self, name: str) -> str:
        """Make the folder of the target `name`; return its path in the record. Raises OSError."""
        folder = f"targets/{clean_name(name)}"
        self._folder.make_folder(folder, FOLDER_MODE, exist_ok=True)
        return folder

    def write_system(self, name: str, facts: Facts) -> None:
        """Write the facts of a target to targets/NAME/system.json. Raises InputError or MeasureError."""
        with clear_errors(self.path / "targets", self._results):
            self._folder.write(
                f"{self._target(name)}/system.json",
                (facts.model_dump_json(indent=1) + "\n").encode(),
            )
            self._folder.sync("targets")

    def write_console(self, name: str, text: bytes) -> Path:
        """Write the console output of the lab guest `name` to targets/NAME/console.log; return that path.

        Text from earlier sessions is kept. Raises InputError or MeasureError.
        """
        with clear_errors(self.path / "targets", self._results):
            file = self._folder.file(f"{self._target(name)}/console.log")
            earlier = b""
            if self._folder.has(file.name) and stat.S_ISREG(self._folder.about(file.name).st_mode):
                with file.open() as console:
                    console.seek(max(os.fstat(console.fileno()).st_size - MOST_EARLIER_BYTES, 0))
                    earlier = console.read(MOST_EARLIER_BYTES)
            # If the guest kept running, its console contains the earlier text.
            self._folder.write(file.name, text if text.startswith(earlier) else earlier + LATER + text)
        return file.path

    @staticmethod
    def _session_file(name: str) -> str:
        return f"targets/{clean_name(name)}/session.json"

    def write_session(self, name: str, session: dict[str, Any] | None) -> None:
        """Save what another process needs to resume the session on the target `name`; None removes it.

        Raises InputError or MeasureError.
        """
        file = self._session_file(name)
        with clear_errors(self.path / file, self._results):
            if session is None:
                self._folder.remove(file, missing_ok=True)
                return
            self._target(name)
            self._folder.write(file, json.dumps(session).encode())

    def read_session(self, name: str) -> dict[str, Any] | None:
        """Return the session saved by `write_session`; None if there is none or it is damaged."""
        try:
            session = read_json(self._folder.file(self._session_file(name)))
        except RecordError:
            return None
        return cast("dict[str, Any]", session) if isinstance(session, dict) else None

    def write_page(self, name: str, text: str) -> Path:
        """Write an HTML page into the record; return its path. Raises InputError or MeasureError."""
        return write_page(self._folder, name, text)

    def write_log(self, name: str, data: bytes) -> None:
        """Write a file about the run as a whole. Raises InputError or MeasureError."""
        with clear_errors(self.path / name, self._results):
            self._folder.write(name, data)

    @staticmethod
    def _temporary(step_id: str) -> str:
        if not STEP_ID.fullmatch(step_id) or step_id.endswith(".tmp"):
            raise ValueError(f"'{step_id}' cannot be the name of a step")
        return f"steps/.{step_id}.tmp"

    def step_folder(self, step_id: str) -> Path:
        """Make an empty folder for a step's files while it is measured; return a path into it. Only this user
        may change the folder; `commit_step` renames it.

        The path leads to the folder even if someone renames it. Raises InputError if the step already exists,
        or MeasureError.
        """
        return self._new_step(step_id).place

    def _new_step(self, step_id: str) -> RecordFolder:
        temporary = self._temporary(step_id)
        with clear_errors(self.path / temporary, self._results):
            if self._folder.has(f"steps/{step_id}"):
                raise InputError(f"{self.path} already has a step {step_id}")
            self._folder.remove(temporary, missing_ok=True)
            self._folder.make_folder(temporary, OWN_FOLDER_MODE)
            self._step = self._folder.below(temporary)
        return self._step

    def drop_step(self, step_id: str) -> None:
        """Remove the folder of a step that was not committed."""
        self._step = None
        with suppress(OSError):
            self._folder.remove(self._temporary(step_id), missing_ok=True)

    def remove_step(self, step_id: str) -> None:
        """Remove a step that ended early, so that it can be repeated."""
        with suppress(OSError):
            self._folder.remove(f"steps/{step_id}", missing_ok=True)
        if self.run is not None:
            self.write_run(
                self.run.model_copy(update={"steps": [name for name in self.run.steps if name != step_id]})
            )

    def commit_step(self, step: Step, windows: Windows) -> Path:
        """Write step.json and windows.parquet, rename the folder and list the step in run.json; return the
        folder.

        For a long step, whose windows are already in part files, `windows` are the blocks for blocks.parquet.
        Raises InputError or MeasureError; then the step is absent, and the rest of the record is unchanged.
        """
        temporary = self._temporary(step.id)
        folder = (
            self._step
            if self._step is not None and self._step.path == self.path / temporary
            else self._new_step(step.id)
        )
        with clear_errors(self.path / temporary, self._results):
            if self._with_windows:
                self._write_windows(windows, folder)
            step.checksums = {
                name: checksum(folder.file(name)) for name in folder.names() if name != "step.json"
            }
            with folder.new_file("step.json") as file:
                file.write(_bytes(step))
            os.fchmod(folder.descriptor, stat.S_IMODE(self._folder.about("steps").st_mode) & FOLDER_MODE)
            folder.sync_all()
            self._folder.rename(temporary, f"steps/{step.id}")
            self._folder.sync("steps")
        self._step = None
        if self.run is not None:
            self.write_run(self.run.model_copy(update={"steps": [*self.run.steps, step.id]}))
        return self.path / "steps" / step.id

    @staticmethod
    def _write_windows(windows: Windows, folder: RecordFolder) -> None:
        from rtgauge.record.windows_file import write_windows

        with folder.new_file(BLOCKS if any(map(PART.fullmatch, folder.names())) else WINDOWS) as file:
            write_windows(windows, file)

    def close_partial(self) -> None:
        """Leave the record resumable: with the state `interrupted`, and with `.partial` in its name."""
        if self.run is not None:
            self.write_run(self.run.model_copy(update={"state": "interrupted"}))

    def finish(self, state: Literal["complete", "interrupted"], now: datetime | None = None) -> Path:
        """Close the record: write state and end to run.json, remove `.partial` from the name; return the
        folder.

        An interrupted record can be resumed. Raises InputError or MeasureError; the record then keeps its
        `.partial`.
        """
        if self.run is None:
            raise ValueError("write the run before finishing the record")
        ended = utc_time(now or datetime.now(UTC))
        self.write_run(self.run.model_copy(update={"state": state, "ended": ended}))
        folder = self.path.with_name(self.id)
        with clear_errors(folder, self._results):
            self.path.rename(folder)
            sync_folder(folder.parent)
        self._folder.path = folder
        return folder
