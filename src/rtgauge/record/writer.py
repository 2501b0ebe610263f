# SPDX-License-Identifier: MIT
"""Writes a record's folder (docs/formats/record.md): a step in it is complete or absent, whatever happens."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import weakref
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from rtgauge.errors import InputError, RecordError
from rtgauge.record.files import below_descriptor, check_name, check_own, checksum, clean_name, clear_errors, shown, sync_folder, sync_tree, write_whole
from rtgauge.record.finder import PARTIAL
from rtgauge.record.model import Run, Step
from rtgauge.record.reader import BLOCKS, PARTS, STEP_ID, WINDOWS, Record, read_json, read_model

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from rtgauge.record.window_columns import WindowColumns

FOLDERS = ("steps", "targets")
FOLDER_MODE = 0o775
"""At most: where the umask would let anyone write, only the group may."""
LATER = b"\n--- in a later session\n"
MOST_EARLIER_BYTES = 1 << 20


def record_id(host: str, name: str, now: datetime) -> str:
    """`2026-11-21T10-03-22Z-HOST-NAME-7f3a`; the random suffix distinguishes runs of the same second."""
    return f"{now.astimezone(UTC):%Y-%m-%dT%H-%M-%SZ}-{clean_name(host)}-{clean_name(name)}-{secrets.token_hex(2)}"


def _bytes(model: Run | Step) -> bytes:
    return (model.model_dump_json(indent=1) + "\n").encode()


class RecordWriter:
    """Writes a record. `path`: its folder; `id`: its name; `run`: the content of run.json (None before `write_run`).

    The folder is opened once, and everything is written below its descriptor (`_place`): who owns the folder around it can rename it,
    but not lead what is written elsewhere. `with_windows`: whether the windows of steps that have few are written; figures do without them.
    """

    def __init__(self, path: Path, record: str, run: Run | None = None, *, with_windows: bool = True) -> None:
        """Raises InputError for a folder that is a link, or another user's."""
        self.path = path
        self.id = record
        self.run = run
        self._with_windows = with_windows
        with clear_errors(path):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            weakref.finalize(self, os.close, descriptor)
            check_own(descriptor)
        self._place = below_descriptor(descriptor)

    @classmethod
    def create(cls, out: Path, *, host: str, name: str, now: datetime | None = None, with_windows: bool = True) -> RecordWriter:
        """Create `<out>/<id>.partial`. `name`: of the plan or tool.

        Raises InputError if `out` is a record, not a folder or not writable, MeasureError if the disk is full.
        """
        check_name(out.absolute())
        if (out / "run.json").exists():
            raise InputError(f"{out} is already a record: choose another folder with --out, or continue it with --resume")
        record = record_id(host, name, now or datetime.now(UTC))
        path = out / (record + PARTIAL)
        with clear_errors(out):
            out.mkdir(parents=True, exist_ok=True)
            path.mkdir(FOLDER_MODE)
            writer = cls(path, record, with_windows=with_windows)
            for part in FOLDERS:
                (writer._place / part).mkdir(FOLDER_MODE)
            sync_folder(writer._place)
            sync_folder(out)
        return writer

    @classmethod
    def open_partial(cls, path: Path) -> RecordWriter:
        """Continue an unfinished record: its `run` lists the finished steps, half-written ones are removed.

        An interrupted record gets its `.partial` back. Raises RecordError for a damaged one, InputError for a complete one and for one
        that another user can change.
        """
        path = path.resolve() if path.is_symlink() else path
        if not (path / "run.json").is_file():
            raise RecordError(f"{path} is not a record that can be resumed: it has no run.json")
        run = read_model(path / "run.json", Run)
        if run.state == "complete":
            raise InputError(f"{path} is complete: there is nothing to resume")
        with clear_errors(path):
            if not path.name.endswith(PARTIAL):
                path = path.rename(path.with_name(path.name + PARTIAL))
            writer = cls(path, run.id)
            for name in FOLDERS:
                (writer._place / name).mkdir(FOLDER_MODE, exist_ok=True)
            writer._check_folders()
            steps = writer._place / "steps"
            for leftover in [*steps.glob(".*.tmp"), *writer._place.glob(".*.tmp")]:
                shutil.rmtree(leftover) if leftover.is_dir() and not leftover.is_symlink() else leftover.unlink()
            sync_folder(steps)
        for step in run.steps:
            read_model(steps / step / "step.json", Step)
        # Steps that were complete before run.json could list them.
        unlisted = [folder.name for folder in sorted(steps.iterdir()) if folder.name not in run.steps and (folder / "step.json").is_file()]
        run = run.model_copy(
            update={"steps": [*run.steps, *(read_model(steps / name / "step.json", Step).id for name in unlisted)], "state": "partial", "ended": None}
        )
        writer.write_run(run)
        return writer

    def _check_folders(self) -> None:
        """The folders of a record that is continued are folders, of one owner, and only he (or a group of his) may write in them. Raises InputError."""
        owner = self._place.stat().st_uid
        owners = owner == os.geteuid()
        for folder in [self._place, *(entry for name in FOLDERS for entry in [self._place / name, *(self._place / name).iterdir()])]:
            about = folder.stat() if folder == self._place else folder.lstat()
            if stat.S_ISREG(about.st_mode):
                continue
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != owner or (owners and about.st_mode & stat.S_IWOTH):
                raise InputError(f"{shown(folder)} is a link, another user's, or anyone may write in it: not resumed; measure again, or make it yours alone")

    def record(self) -> Record:
        """The record as written so far. Raises RecordError."""
        return Record.open(self.path)

    def write_run(self, run: Run) -> None:
        """Write run.json atomically. Raises InputError or MeasureError."""
        with clear_errors(self.path / "run.json", self.path):
            write_whole(self._place / "run.json", _bytes(run))
        self.run = run

    def write_system(self, name: str, facts: dict[str, Any]) -> None:
        """Write the facts of the target `name` to targets/NAME/system.json. Raises InputError or MeasureError."""
        folder = self._place / "targets" / clean_name(name)
        with clear_errors(folder, self.path):
            folder.mkdir(FOLDER_MODE, exist_ok=True)
            write_whole(folder / "system.json", (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode())
            sync_folder(folder.parent)

    def write_console(self, name: str, text: bytes) -> Path:
        """Write the console of the target `name`, a lab guest, to targets/NAME/console.log; gives that path.

        The console of an earlier session stays before it. Raises InputError or MeasureError.
        """
        file = self._place / "targets" / clean_name(name) / "console.log"
        with clear_errors(file.parent, self.path):
            file.parent.mkdir(FOLDER_MODE, exist_ok=True)
            earlier = file.read_bytes()[-MOST_EARLIER_BYTES:] if file.exists() else b""
            # The console of a guest that kept running contains the earlier text.
            write_whole(file, text if text.startswith(earlier) else earlier + LATER + text)
        return self.path / file.relative_to(self._place)

    def _session_file(self, name: str) -> Path:
        return self._place / "targets" / clean_name(name) / "session.json"

    def write_session(self, name: str, session: dict[str, Any] | None) -> None:
        """Save what another process needs to resume the session on the target `name`; None: there is none. Raises InputError or MeasureError."""
        file = self._session_file(name)
        with clear_errors(file, self.path):
            if session is None:
                file.unlink(missing_ok=True)
                return
            file.parent.mkdir(FOLDER_MODE, exist_ok=True)
            write_whole(file, json.dumps(session).encode())

    def read_session(self, name: str) -> dict[str, Any] | None:
        """The session saved by `write_session`; None if there is none or it is damaged."""
        try:
            session = read_json(self._session_file(name))
        except RecordError:
            return None
        return cast("dict[str, Any]", session) if isinstance(session, dict) else None

    def write_page(self, name: str, text: str) -> Path:
        """Write an HTML page into the record; gives its path. Raises InputError or MeasureError."""
        with clear_errors(self.path / name, option="-o", kind="file"):
            write_whole(self._place / name, text.encode(errors="replace"))
        return self.path / name

    def _temporary(self, step_id: str) -> Path:
        if not STEP_ID.fullmatch(step_id) or step_id.endswith(".tmp"):
            raise ValueError(f"'{step_id}' is not the name of a step")
        return self._place / "steps" / f".{step_id}.tmp"

    def step_folder(self, step_id: str) -> Path:
        """A new empty folder for the files of a step while it is measured; `commit_step` renames it.

        Raises InputError if the step already exists, or MeasureError.
        """
        temporary = self._temporary(step_id)
        if (self._place / "steps" / step_id).exists():
            raise InputError(f"{self.path} already has a step {step_id}")
        with clear_errors(temporary, self.path):
            if temporary.exists():
                shutil.rmtree(temporary)
            temporary.mkdir(FOLDER_MODE)
        return temporary

    def drop_step(self, step_id: str) -> None:
        """Remove the folder of a step that is not committed."""
        shutil.rmtree(self._temporary(step_id), ignore_errors=True)

    def remove_step(self, step_id: str) -> None:
        """Remove a step that ended early, so that it can be measured again."""
        shutil.rmtree(self._place / "steps" / step_id, ignore_errors=True)
        if self.run is not None:
            self.write_run(self.run.model_copy(update={"steps": [name for name in self.run.steps if name != step_id]}))

    def commit_step(self, step: Step, windows: pl.DataFrame | WindowColumns) -> Path:
        """Write step.json and windows.parquet, rename the folder and list the step in run.json; gives the folder.

        Of a long step, whose windows are in part files in its folder already, `windows` are its blocks, for blocks.parquet.

        Raises InputError or MeasureError; the step is then absent and the record otherwise unchanged.
        """
        from rtgauge.record.window_columns import WindowColumns

        temporary, folder = self._temporary(step.id), self._place / "steps" / step.id
        with clear_errors(temporary, self.path):
            temporary.mkdir(FOLDER_MODE, exist_ok=True)
            if self._with_windows or not isinstance(windows, WindowColumns):
                self._write_windows(windows, temporary)
            step.checksums = {file.name: checksum(file) for file in sorted(temporary.iterdir()) if file.name != "step.json"}
            (temporary / "step.json").write_bytes(_bytes(step))
            sync_tree(temporary)
            temporary.rename(folder)
            sync_folder(folder.parent)
        if self.run is not None:
            self.write_run(self.run.model_copy(update={"steps": [*self.run.steps, step.id]}))
        return self.path / "steps" / step.id

    @staticmethod
    def _write_windows(windows: pl.DataFrame | WindowColumns, folder: Path) -> None:
        from rtgauge.record.window_frame import as_frame
        from rtgauge.record.windows_file import write_windows

        frame = as_frame(windows)
        with (folder / (BLOCKS if any(folder.glob(PARTS)) else WINDOWS)).open("wb") as file:
            write_windows(frame, file)

    def close_partial(self) -> None:
        """Leave the record to be resumed: state `interrupted`, name with `.partial`."""
        if self.run is not None:
            self.write_run(self.run.model_copy(update={"state": "interrupted"}))

    def finish(self, state: Literal["complete", "interrupted"], now: datetime | None = None) -> Path:
        """Close the record: write state and end to run.json, remove `.partial` from its name; gives its folder. An interrupted one can be resumed.

        Raises InputError or MeasureError; the record then keeps its `.partial`.
        """
        if self.run is None:
            raise ValueError("a record is finished after its run was written")
        self.write_run(self.run.model_copy(update={"state": state, "ended": f"{(now or datetime.now(UTC)).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"}))
        folder = self.path.with_name(self.id)
        with clear_errors(folder, self.path):
            self.path.rename(folder)
            sync_folder(folder.parent)
        self.path = folder
        return folder
