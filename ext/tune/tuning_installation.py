# SPDX-License-Identifier: MIT
"""Puts a tuning's files into force on this machine, now and at each boot, and removes them again.

Values are written through the journal, as `rtgauge deploy apply` does, so `rtgauge restore --applied`
restores them too. The files contain the old values, so that these can be restored after a boot.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from rtgauge.cli.kept_settings import Keeper
from rtgauge.errors import InputError, MeasureError
from rtgauge.input_file import MOST_TOML, read_regular
from rtgauge.record.files import write_whole
from rtgauge.record.model import SettingMade
from rtgauge.system.deployment.apply import explain_refusal
from rtgauge.system.deployment.current import read_held
from rtgauge.target.address import LOCAL
from rtgauge.target.file_batch import chosen, cpu_list
from rtgauge.target.guard import LEASE_NS
from rtgauge.target.open_target import TargetOpener
from rtgauge.units import parse_cpu_mask, plural
from rtgauge_ext.tune.keep_files import (
    NAME,
    SLICE_FILE,
    SYSCTL,
    SYSCTL_FILE,
    UNIT_FILE,
    Value,
    files_with,
    is_unchanged,
    slice_text,
)
from rtgauge_ext.tune.writable import CPUS

if TYPE_CHECKING:
    from rtgauge.record.record_folder import RecordFolder
    from rtgauge.target.target_protocol import Target

RUN = f"deploy-{NAME}"
"""The name of the run in the journal."""
SYSCTL_LINES = re.compile(r"^# before: (\S+)\n(\S+) = (\S+)$", re.MULTILINE)
SLICE_LINE = re.compile(rf"^AllowedCPUs=({CPUS})$", re.MULTILINE)
UNIT_LINE = re.compile(r"^Exec(Start|Stop)=/bin/sh -c 'echo (\S+) > (\S+)'$", re.MULTILINE)
SYSTEMD = Path("/run/systemd/system")
"""Exists if systemd runs (sd_booted(3))."""
UNITS = Path("/etc/systemd/system")
PLACES = {
    SYSCTL_FILE: Path("/etc/sysctl.d") / SYSCTL_FILE,
    UNIT_FILE: UNITS / UNIT_FILE,
    SLICE_FILE: UNITS / SLICE_FILE,
}
"""Where each file is installed, by its name."""
WANTS_FOLDER = UNITS / "multi-user.target.wants"
"""The folder of the links that make systemd start units at each boot."""
LINKED = (UNIT_FILE, SLICE_FILE)
PARTITION = Path("/sys/fs/cgroup") / SLICE_FILE / "cpuset.cpus.partition"


def read_files(folder: RecordFolder) -> dict[str, str]:
    """Read the files of a folder that `--files` wrote. Raises InputError."""
    texts: dict[str, str] = {}
    for name in PLACES:
        try:
            if folder.has(name):
                texts[name] = folder.file(name).read(MOST_TOML).decode(errors="replace")
        except OSError as error:
            raise InputError(f"{folder.path / name} cannot be read: {error.strerror}") from None
    if not texts:
        files = f"none of {', '.join(PLACES)}"
        raise InputError(f"{folder.path} has {files}; write these files with: rtgauge tune --files")
    return texts


def values_of(files: Mapping[str, str]) -> list[Value]:
    """Return the values that the files set. Raises InputError for one that no rule or deployment of rtgauge
    would write.
    """
    values = _values(files)
    for each in values:
        if not each.can_be_kept:
            raise InputError(
                f"rtgauge tune never keeps the setting {each}, so it uses nothing from this folder"
            )
    return values


def _values(files: Mapping[str, str]) -> list[Value]:
    sysctls = [
        Value(SYSCTL + name.replace(".", "/"), new, old)
        for old, name, new in SYSCTL_LINES.findall(files.get(SYSCTL_FILE, ""))
    ]
    lines: list[tuple[str, str, str]] = UNIT_LINE.findall(files.get(UNIT_FILE, ""))
    before = {path: value for verb, value, path in lines if verb == "Stop"}
    others = [Value(path, value, before.get(path, "")) for verb, value, path in lines if verb == "Start"]
    return [*sysctls, *others]


def isolated_of(files: Mapping[str, str]) -> str:
    """Return the CPUs that the slice isolates; empty if there is no slice."""
    match = SLICE_LINE.search(files.get(SLICE_FILE, ""))
    return match[1] if match else ""


class Installed(NamedTuple):
    """The values in force now and at each boot, and a line for each value that the machine refused."""

    values: list[Value]
    refused: list[str]


def _link(name: str) -> Path:
    return WANTS_FOLDER / name


def _systemctl(*words: str) -> None:
    if SYSTEMD.is_dir():
        subprocess.run(["systemctl", *words], check=False)


def install(
    values: Sequence[Value], wait_s: float, notify: Callable[[str], None], isolated: str = ""
) -> Installed:
    """Put values into force, and install files with the accepted values for the next boots.

    `wait_s`: how long to wait for the machine if another run holds it; `notify` prints the reason for
    waiting. `isolated`: CPUs for which a slice is installed and started; empty: none.
    Raises MeasureError; then nothing is installed, and the values are restored.
    """
    there = [str(place) for place in (*PLACES.values(), *map(_link, LINKED)) if os.path.lexists(place)]
    if there:
        raise MeasureError(
            f"{there[0]} already exists; undo the earlier rtgauge tune apply with: rtgauge restore --applied "
            "(if somebody has changed the file, restore leaves it: remove it yourself)"
        )
    with _opened("rtgauge tune apply", wait_s, notify) as target:
        held = read_held(target.read)
        if held is not None:
            raise MeasureError(f"{held.name} is already applied; undo it first: rtgauge restore --applied")
        try:
            installed = _written(values, target)
            if not installed.values and not isolated:
                reasons = "; ".join(installed.refused)
                raise MeasureError(
                    f"nothing was installed, because the machine refused every setting: {reasons}"
                )
            files = files_with(installed.values)
            _put_files(files | {SLICE_FILE: slice_text(isolated)} if isolated else files)
        except BaseException as error:
            target.agent("restore", "--held")
            if isinstance(error, OSError):
                raise MeasureError(f"nothing was installed: {error}") from None
            raise
    _systemctl("daemon-reload")
    if isolated:
        _systemctl("start", SLICE_FILE)
        refused = [*installed.refused, *_not_isolated(isolated)]
        return installed._replace(refused=refused)
    return installed


def _not_isolated(cpus: str) -> list[str]:
    """Return a line if the slice does not isolate its CPUs now."""
    try:
        now = read_regular(PARTITION, MOST_TOML).decode(errors="replace").strip()
    except OSError as error:
        now = error.strerror or "unreadable"
    if now == "isolated":
        return []
    return [
        (
            f"isolation of CPU {cpus}: {PARTITION} is '{now}'; CPUSetPartition= needs systemd 261 and "
            f"control groups version 2. Isolate with boot parameters: isolcpus=domain,managed_irq,{cpus}"
        )
    ]


def _opened(label: str, wait_s: float, notify: Callable[[str], None]) -> Target:
    opener = TargetOpener(wait_s, notify)
    return opener.open(LOCAL, RUN, label, LEASE_NS)


def _written(values: Sequence[Value], target: Target) -> Installed:
    """Write the values through the journal."""
    pairs = [word for each in values for word in (each.path, each.wanted)]
    answers = target.agent("set", "--held", "--", *pairs)
    accepted = [each for each, answer in zip(values, answers, strict=True) if answer.get("error") is None]
    refused = [
        explain_refusal(
            SettingMade(
                path=each.path,
                old=answer.get("old"),
                wanted=each.wanted,
                now=answer.get("now"),
                error=answer["error"],
            )
        )
        for each, answer in zip(values, answers, strict=True)
        if answer.get("error") is not None
    ]
    return Installed(accepted, refused)


def _put_files(files: Mapping[str, str]) -> None:
    """Install the files, all of them or none. Raises OSError."""
    made: list[Path] = []
    try:
        for name, text in files.items():
            PLACES[name].parent.mkdir(mode=0o755, exist_ok=True)
            write_whole(PLACES[name], text.encode(), mode=0o644)
            made.append(PLACES[name])
        for name in LINKED:
            if name in files:
                WANTS_FOLDER.mkdir(mode=0o755, exist_ok=True)
                _link(name).symlink_to(f"../{name}")
                made.append(_link(name))
    except BaseException:
        for place in made:
            place.unlink(missing_ok=True)
        raise


class Uninstalled(NamedTuple):
    """How many values were restored, and a line for each value or file that was left."""

    restored: int
    left: list[str]


def uninstall(wait_s: float, notify: Callable[[str], None]) -> Uninstalled:
    """Restore the old values and remove the files that rtgauge wrote. A value or file that somebody has
    changed since then is left alone.

    `wait_s`, `notify`: as for `install`. Raises InputError if nothing is installed, MeasureError.

    The slice is not stopped, because that would end the programs in it. Without its file, systemd gives its
    CPUs back.
    """
    files = {name: text for name, place in PLACES.items() if (text := _own_text(place)) is not None}
    foreign = [place for name, place in PLACES.items() if name not in files and os.path.lexists(place)]
    left = [f"{place}, which rtgauge did not write, or which somebody has changed" for place in foreign]
    values = [each for each in _values(files) if each.can_be_kept]
    paths = [each.path for each in values]
    with _opened("rtgauge restore --applied", wait_s, notify) as target:
        held = read_held(target.read)
        is_held = held is not None and held.name == NAME
        if not files and not is_held:
            also = f" ({left[0]}, stays)" if left else ""
            raise InputError(f"nothing is installed{also}; install files with: rtgauge tune apply")
        if is_held:
            target.agent("restore", "--held")
        # After a boot, the journal does not have the values that the files set.
        now = target.read(paths)
        stale = [each for each in values if same(now.text(each.path) or "", each.wanted)]
        if stale:
            target.agent("set", "--", *(word for each in stale for word in (each.path, each.old)))
            target.agent("set", "--keep", "--", *(each.path for each in stale))
        now = target.read(paths)
    differing = [
        f"{each.path} is now {text or now.error(each.path)}; it was {each.old} before"
        for each in values
        if not same(text := now.text(each.path) or "", each.old)
    ]
    for name in files:
        link = _link(name)
        if link.is_symlink() and str(link.readlink()) == f"../{name}":
            link.unlink()
        PLACES[name].unlink()
    _systemctl("daemon-reload")
    return Uninstalled(len(values) - len(differing), [*differing, *left])


def _undo() -> bool:
    """Undo `rtgauge tune apply` on this machine. Return whether there was something to undo."""
    if not any(os.path.lexists(place) for place in (*PLACES.values(), *map(_link, LINKED))):
        return False
    back, left = uninstall(0.0, lambda reason: typer.echo(reason, err=True))
    for line in left:
        typer.echo(f"left as it is: {line}")
    typer.echo(f"restored {plural(back, 'setting')} and removed the files that the tuning had installed")
    return True


KEPT = Keeper(_undo)


def _own_text(place: Path) -> str | None:
    """Return the text of an installed file; None if it is missing, or not as rtgauge wrote it."""
    if place.is_symlink():
        return None
    try:
        text = read_regular(place, MOST_TOML).decode()
    except (OSError, UnicodeDecodeError):
        return None
    return text if is_unchanged(text) else None


def same(text: str, value: str) -> bool:
    """Return whether a kernel file has this value: the selected word, a number, CPUs or a mask."""
    now = (chosen(text.strip()) or "").strip()
    if now == value or (cpu_list(now) is not None and cpu_list(now) == cpu_list(value)):
        return True
    try:
        return parse_cpu_mask(now) == parse_cpu_mask(value)
    except ValueError:
        return False
