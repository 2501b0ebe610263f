# SPDX-License-Identifier: MIT
"""Reads the settings that a tuning kept, and finds the values on a machine that differ from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import typer

from rtgauge.errors import EXIT_FAILS, EXIT_OK, InputError
from rtgauge.input_file import real_path
from rtgauge.record.own_folder import OwnFolder
from rtgauge.record.reader import RUN, Record, find_record, opened_folder
from rtgauge.record.record_folder import RecordFolder
from rtgauge.target.open_target import reader
from rtgauge.units import plural
from rtgauge_ext.tune.keep_files import Value, keep_files
from rtgauge_ext.tune.result import TuneResult
from rtgauge_ext.tune.tuning_installation import isolated_of, read_files, same, values_of


class KeptSettings(NamedTuple):
    """What a tuning kept: values of kernel files, and the CPUs that it isolated, empty for none."""

    values: list[Value]
    isolated: str


def kept_settings(named: Path) -> KeptSettings:
    """Return the settings that a tuning kept, from the folder that `--files` wrote or from its record, which
    anybody may have made. Raises InputError, RecordError.
    """
    return _settings(opened_folder(find_record(named)), named)


def own_settings(named: Path) -> KeptSettings:
    """Return the settings as `kept_settings` does, from a folder that no other user can change. Raises
    InputError, RecordError.
    """
    return _settings(_own_folder(named), named)


def _own_folder(named: Path) -> RecordFolder:
    record = find_record(named)
    opened_folder(record).close()
    try:
        folder = OwnFolder.existing(real_path(record))
        folder.check_content()
    except OSError as error:
        raise InputError(
            f"rtgauge does not apply {error.filename or record} ({error.strerror}); read what it sets, and "
            "apply a copy that belongs to you"
        ) from None
    return folder


def _files(folder: RecordFolder, named: Path) -> Mapping[str, str]:
    if not folder.has(RUN):
        return read_files(folder)
    record = Record.of(folder)
    result = TuneResult.of(record)
    if not result.helps:
        raise InputError(f"{named} has no settings to keep, because it ended with: {result.outcome}")
    return keep_files(result, record)


def _settings(folder: RecordFolder, named: Path) -> KeptSettings:
    files = _files(folder, named)
    settings = KeptSettings(values_of(files), isolated_of(files))
    if any(settings):
        return settings
    if not folder.has(RUN):
        raise InputError(f"the files in {named} set nothing; write them again with: rtgauge tune --files")
    raise InputError(
        f"the settings that {named} kept cannot be applied at each boot; see them with: rtgauge resume "
        f"{named}"
    )


def drifted(named: Path, target: str) -> dict[Value, str | None]:
    """Return the values that were kept, each with the target's present one; None if that is the same.

    Raises InputError, RecordError, MeasureError.
    """
    values = kept_settings(named).values
    with reader(target) as (_, read):
        files = read([each.path for each in values])
    changed: dict[Value, str | None] = {}
    for each in values:
        now = files.text(each.path)
        is_same = now is not None and same(now, each.wanted)
        changed[each] = None if is_same else now if now is not None else files.error(each.path) or "not there"
    return changed


def print_drift(profile: Path, target: str) -> int:
    """Print the settings that have drifted from a profile. Return the exit status, 1 if there are any."""
    kept = drifted(profile, target)
    changed = {value: now for value, now in kept.items() if now is not None}
    for value, now in changed.items():
        typer.echo(f"{value.path} is {now}; rtgauge tune kept {value.wanted}")
    typer.echo(f"{len(changed)} of {plural(len(kept), 'kept setting')} drifted")
    return EXIT_FAILS if changed else EXIT_OK
