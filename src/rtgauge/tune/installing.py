# SPDX-License-Identifier: MIT
"""Puts a tuning's files into force on this machine, now and at each boot, and removes them again.

Values are written through the journal, as `rtgauge deploy apply` does, so `rtgauge restore --applied`
restores them too. The files contain the old values, so that these can be restored after a boot.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rtgauge.errors import InputError, MeasureError
from rtgauge.input_file import MOST_TOML, read_regular
from rtgauge.record.files import write_whole
from rtgauge.system.deployment.current import read_held
from rtgauge.target.file_batch import chosen, cpu_list
from rtgauge.target.open_target import open_target
from rtgauge.tune.keep_files import NAME, SYSCTL, SYSCTL_FILE, UNIT_FILE, Value, files_with
from rtgauge.units import parse_cpu_mask

RUN = f"deploy-{NAME}"
"""The name of the run in the journal."""
SYSCTL_LINES = re.compile(r"^# before: (\S+)\n(\S+) = (\S+)$", re.MULTILINE)
UNIT_LINE = re.compile(r"^Exec(Start|Stop)=/bin/sh -c 'echo (\S+) > (\S+)'$", re.MULTILINE)
SYSTEMD = Path("/run/systemd/system")
"""Exists if systemd runs (sd_booted(3))."""
UNITS = Path("/etc/systemd/system")
PLACES = {SYSCTL_FILE: Path("/etc/sysctl.d") / SYSCTL_FILE, UNIT_FILE: UNITS / UNIT_FILE}
"""Where each file is installed, by its name."""
LINK = UNITS / "multi-user.target.wants" / UNIT_FILE
"""The link that makes systemd start the unit at each boot."""


def read_files(folder: Path) -> dict[str, str]:
    """Read the files of a folder that `--files` wrote. Raises InputError."""
    found: dict[str, str] = {}
    for name in PLACES:
        with suppress(FileNotFoundError):
            found[name] = read_regular(folder / name, MOST_TOML).decode(errors="replace")
    if not found:
        files = f"neither {SYSCTL_FILE} nor {UNIT_FILE}"
        raise InputError(f"{folder} has {files}; write these files with: rtgauge tune --files")
    return found


def values_of(files: Mapping[str, str]) -> list[Value]:
    """Return the values that the files set. Raises InputError for a line that sets anything but a file in
    /proc or /sys.
    """
    sysctls = [
        Value(SYSCTL + name.replace(".", "/"), wanted, old)
        for old, name, wanted in SYSCTL_LINES.findall(files.get(SYSCTL_FILE, ""))
    ]
    lines: list[tuple[str, str, str]] = UNIT_LINE.findall(files.get(UNIT_FILE, ""))
    before = {path: value for verb, value, path in lines if verb == "Stop"}
    others = [Value(path, value, before.get(path, "")) for verb, value, path in lines if verb == "Start"]
    found = [*sysctls, *others]
    for each in found:
        if not each.is_plain:
            raise InputError(
                f"{each.path} is not in /proc or /sys, so a tune file cannot set it to {each.wanted}"
            )
    return found


def install(values: Sequence[Value]) -> list[str]:
    """Put values into force, and install files for the next boots. Return a line for each refusal by the
    machine.

    Raises MeasureError; then nothing is installed.
    """
    files = files_with(values)  # made again from the values, so that root's files get nothing else
    there = [str(place) for place in PLACES.values() if place.exists()]
    if there:
        raise MeasureError(f"{there[0]} already exists; remove it first: rtgauge tune remove")
    try:
        for name, text in files.items():
            PLACES[name].parent.mkdir(parents=True, exist_ok=True)
            write_whole(PLACES[name], text.encode())
        if UNIT_FILE in files:
            LINK.parent.mkdir(parents=True, exist_ok=True)
            LINK.symlink_to(Path("..") / UNIT_FILE)
        refused = _write(values)
    except BaseException as error:
        _delete()
        if isinstance(error, OSError):
            raise MeasureError(f"nothing was installed: {error}") from None
        raise
    _reload()
    return refused


def _write(values: Iterable[Value]) -> list[str]:
    """Write the values through the journal. Raises MeasureError."""
    pairs = [word for each in values for word in (each.path, each.wanted)]
    with open_target("local", RUN, "rtgauge tune apply") as target:
        held = read_held(target.read)
        if held is not None:
            raise MeasureError(f"{held.name} is already applied; undo it first: rtgauge restore --applied")
        answers = target.agent("set", "--held", "--", *pairs) if pairs else []
    return [f"{answer['path']}: {answer['error']}" for answer in answers if answer.get("error") is not None]


class Uninstalled(NamedTuple):
    """How many values were restored, and a line for each value that was not."""

    restored: int
    left: list[str]


def uninstall() -> Uninstalled:
    """Restore the old values and remove the files. A value that somebody has changed since then is left
    alone.

    Raises InputError if nothing is installed, MeasureError.
    """
    files = {name: place.read_text() for name, place in PLACES.items() if place.exists()}
    if not files:
        raise InputError("nothing is installed; install files with: rtgauge tune apply")
    values = values_of(files)
    paths = [each.path for each in values]
    with open_target("local", RUN, "rtgauge tune remove") as target:
        held = read_held(target.read)
        if held is not None and held.name == NAME:
            target.agent("restore", "--stale", "--held")
        # After a boot, the journal does not have the values that the files set.
        now = target.read(paths)
        stale = [each for each in values if same(now.text(each.path) or "", each.wanted)]
        if stale:
            target.agent("set", "--", *(word for each in stale for word in (each.path, each.old)))
            target.agent("set", "--keep", "--", *(each.path for each in stale))
        now = target.read(paths)
    left = [
        f"{each.path} is now {text or now.error(each.path)}; it was {each.old} before"
        for each in values
        if not same(text := now.text(each.path) or "", each.old)
    ]
    _delete()
    _reload()
    return Uninstalled(len(values) - len(left), left)


def _delete() -> None:
    for place in (*PLACES.values(), LINK):
        place.unlink(missing_ok=True)


def _reload() -> None:
    if SYSTEMD.is_dir():
        subprocess.run(["systemctl", "daemon-reload"], check=False)


def same(text: str, value: str) -> bool:
    """Return whether a kernel file has this value: the selected word, a number, CPUs or a mask."""
    now = (chosen(text.strip()) or "").strip()
    if now == value or (cpu_list(now) is not None and cpu_list(now) == cpu_list(value)):
        return True
    try:
        return parse_cpu_mask(now) == parse_cpu_mask(value)
    except ValueError:
        return False
