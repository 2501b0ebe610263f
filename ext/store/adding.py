# SPDX-License-Identifier: MIT
"""Adds records to a store after checking their files, and rebuilds a store from its records."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rtgauge.errors import InputError, MeasureError, RecordError, RtgaugeError
from rtgauge.input_file import MOST_JSON, real_path
from rtgauge.record.files import clear_errors
from rtgauge.record.model import Run
from rtgauge.record.reader import RUN, SUMS, Record, described_in, opened_folder, read_model, record_folders
from rtgauge.record.record_folder import RecordFolder, damaged
from rtgauge_ext.store import postgresql
from rtgauge_ext.store.database import BUSY_S, DamagedError, Place, clear_problems, place_of
from rtgauge_ext.store.digest import checksum_of, digest_of
from rtgauge_ext.store.document import Added, StoreRebuilt
from rtgauge_ext.store.labels import Labels, read_labels, write_labels
from rtgauge_ext.store.postgresql import Server
from rtgauge_ext.store.store import AddingOutcome, Store

SUM_LINE = re.compile(r"([0-9a-f]{64})  ([^\0]+)")


@dataclass(frozen=True)
class GivenLabels:
    """What the user says about a record; an empty text removes the label or the commit.

    `machines`: target -> name; "" is the run's first target. `relabel`: whether these replace what the
    record already has.
    """

    commit: str | None = None
    labels: dict[str, str] = field(default_factory=dict[str, str])
    machines: dict[str, str] = field(default_factory=dict[str, str])
    relabel: bool = False

    def merged(self, before: Labels, targets: Sequence[str]) -> Labels:
        """Return earlier labels with these changes. Raises InputError for a target that the record lacks."""
        unknown = [target for target in self.machines if target and target not in targets]
        if unknown:
            raise InputError(
                f"--machine {unknown[0]} is not one of the record's targets, {', '.join(targets)}"
            )
        named = {target or targets[0]: name for target, name in self.machines.items()} if targets else {}
        return Labels(
            commit=before.commit if self.commit is None else self.commit or None,
            labels={key: value for key, value in {**before.labels, **self.labels}.items() if value},
            machines={key: value for key, value in {**before.machines, **named}.items() if value},
        )


def _replaced(before: Labels, after: Labels) -> list[str]:
    """Return what the labels `before` say that `after` does not, as a user would write it."""
    machines = (
        f"machine {name}" for target, name in before.machines.items() if after.machines.get(target) != name
    )
    labels = (
        f"label {key}={value}" for key, value in before.labels.items() if after.labels.get(key) != value
    )
    commit = [f"commit {before.commit}"] if before.commit not in {None, after.commit} else []
    return [*commit, *labels, *machines]


def folders_of(path: Path) -> list[Path]:
    """Return the folder of the record at `path` or, if `path` is a folder of records, the folders of all
    records in it.
    """
    return [path] if (path / RUN).exists() or not path.is_dir() else record_folders(path) or [path]


class AddedRecord(NamedTuple):
    """A record's name, and the outcome of adding it. `kept`: whether it does not have the labels given."""

    name: str
    outcome: AddingOutcome
    kept: bool = False


def add(
    store: Store,
    path: Path,
    given: GivenLabels | None = None,
    *,
    again: bool = False,
    in_batch: bool = False,
) -> AddedRecord:
    """Add the record in the folder `path`, and keep in the record what the user said about it.

    `again`: read it again even if nothing changed. `in_batch`: the user named several records or a
    folder, so what the user said is about the records that the store does not have yet; other records keep
    their labels.
    Raises RecordError for a damaged record, InputError or MeasureError if a file or the store cannot be
    written, and InputError if the record has another label and `given.relabel` is not set.
    """
    folder = opened_folder(path)
    try:
        with folder.locked():  # the store gets what another program writes into the record last
            return _add(store, folder, path, given, again=again, in_batch=in_batch)
    except TimeoutError as error:
        raise MeasureError(f"{path} could not be added ({error.strerror}): try again") from None


def _add(
    store: Store,
    folder: RecordFolder,
    path: Path,
    given: GivenLabels | None,
    *,
    again: bool,
    in_batch: bool,
) -> AddedRecord:
    run = read_model(folder.file(RUN), Run)
    kept = given is not None and not _write_labels(store, folder, run, given, in_batch=in_batch)
    # Compute the checksum first: if the record changes later, adding it again finds the change.
    try:
        sha256 = checksum_of(folder)
    except OSError as error:
        raise damaged(path, error) from None
    if not again and store.known(run.id, path, sha256) is AddingOutcome.UNCHANGED:
        return AddedRecord(run.id, AddingOutcome.UNCHANGED, kept)
    record = Record.of(folder)
    _check_files(record)
    return AddedRecord(run.id, store.put(digest_of(record, sha256), path, again=again), kept)


def _check_files(record: Record) -> None:
    """Check every file against its checksum. A step's missing files are skipped, because the user may
    delete streams and logs.

    Raises RecordError for a file that differs.
    """
    _check_described(record.folder)
    for step in record.steps:
        for name in step.checksums:
            if record.has(step, name):
                try:
                    record.file(step, name).open().close()
                except (OSError, ValueError) as error:
                    raise damaged(record.file(step, name), error) from None


def _check_described(folder: RecordFolder) -> None:
    """Check run.json, step.json and system.json. Older records have no checksums of these files."""
    if not folder.has(SUMS):
        return
    file = folder.file(SUMS)
    try:
        lines = file.read(MOST_JSON).decode().splitlines()
    except (OSError, ValueError) as error:
        raise damaged(file, error) from None
    sums = {match[2]: match[1] for line in lines if (match := SUM_LINE.fullmatch(line)) is not None}
    if len(sums) < len(lines) or sorted(sums) != sorted(described_in(folder)):
        raise RecordError(f"{file} does not list exactly the files of the record: the record is damaged")
    for name, sha256 in sums.items():
        try:
            folder.file(name, sha256).open().close()
        except (OSError, ValueError) as error:
            raise damaged(folder.file(name), error) from None


def _write_labels(
    store: Store, folder: RecordFolder, run: Run, given: GivenLabels, *, in_batch: bool
) -> bool:
    """Write what the user said into the record. Return whether the record now says so."""
    before = read_labels(folder)
    labels = given.merged(before, run.targets)
    if labels == before:
        return True
    if not given.relabel:
        replaced = _replaced(before, labels)
        if in_batch and (replaced or store.holds(run.id)):
            return False
        if replaced:
            raise InputError(f"{run.id} already has the {replaced[0]}; to replace it, add --relabel")
    with clear_errors(folder.path, option="--label"):
        write_labels(folder, labels)
    return True


def rebuild(
    path: str | Path,
    folders: Sequence[Path] = (),
    *,
    progress: Callable[[int, int], None] = lambda _read, _all: None,
) -> StoreRebuilt:
    """Rebuild the store `path` from the records that it knows and every record in `folders` (default: the
    store's folder).

    Each record is replaced in a transaction of its own: other writers can continue, and a kill leaves a whole
    store. A damaged store is renamed and kept. If a record's folder is gone, the store keeps the record's
    figures.
    """
    place = place_of(path)
    if not folders and not isinstance(place, Server):
        folders = [place.parent]
    try:
        return _rebuild(path, folders, progress)
    except DamagedError:
        put_aside = _put_aside(place)
        return _rebuild(path, folders, progress).model_copy(update={"put_aside": put_aside})


def _put_aside(path: Place) -> str:
    if isinstance(path, Server):
        with clear_problems(path):
            return postgresql.put_aside(path, BUSY_S)
    number = next(n for n in range(1, 10_000) if not path.with_name(f"{path.name}.damaged-{n}").exists())
    aside = path.with_name(f"{path.name}.damaged-{number}")
    with clear_errors(path, option="--store", kind="file"):
        for end in ("-wal", "-shm", ""):
            own = path.with_name(f"{path.name}{end}")
            if own.exists():
                own.rename(aside.with_name(f"{aside.name}{end}"))
    return str(aside)


def _rebuild(path: str | Path, folders: Sequence[Path], progress: Callable[[int, int], None]) -> StoreRebuilt:
    store = Store.open(path, make=True)
    known = store.paths()
    folders_to_read = [
        place for path in known.values() if store.is_there(path) and (place := store.place_of(path))
    ]
    folders_to_read += [record for folder in folders for record in folders_of(folder)]
    every = list({real_path(place): place for place in folders_to_read}.values())
    added: list[str] = []
    failed: list[Added] = []
    for number, place in enumerate(every):
        progress(number, len(every))
        try:
            added.append(add(store, place, again=True).name)
        except DamagedError:
            raise
        except RtgaugeError as error:
            failed.append(Added(path=str(place), record=None, outcome=None, error=str(error)))
    gone = {name for name, path in known.items() if store.is_there(path) is False}
    store.prune()
    missing = sorted(gone - set(added))
    return StoreRebuilt(store=str(path), read=len(added), failed=failed, missing=missing, put_aside=None)
