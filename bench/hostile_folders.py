# SPDX-License-Identifier: MIT
"""Gives every command that takes a path what somebody else may have put there: folders, links, pipes,
devices, files of another user, empty, large and deep ones; and folders of rtgauge with such a file.

    python bench/hostile_folders.py [--number N] [--seed N] [--only WORD]

Needs root. Everything runs in a mount namespace of its own, on an overlay of this machine's files. Nothing
may be written except where the command line says, end in a traceback, take more than 20 s, or run a program
that a file names. `--number` tries so many cases, chosen at random.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

LONGEST_S = 20.0
NOBODY = 65534
LARGE, DEEP = 1 << 30, 1 << 20
CASE = Path("/rtgauge-hostile")
"""The folder of a case, in the overlay. `given` is the hostile thing, `out` the place for results."""
GIVEN, OUT, VICTIM, CANARY = CASE / "given", CASE / "out", CASE / "victim", Path("/rtgauge-was-here")
PRECIOUS = "precious\n"
MAY_CHANGE = (
    str(GIVEN),
    str(OUT),
    str(CASE / "rtgauge-runs"),
    str(CASE / "base/store"),
    str(CASE / "base/record"),
    "/run/rtgauge",
    "/var/lib/rtgauge",
)
"""Where a command may write: where the command line says, into a record, next to a store, and the
machine's lock and journal.
"""
SETTLED = re.compile(
    r"__pycache__|\.pyc$|^/root/\.cache(/|$)|^/(root|run|var|var/lib|tmp|rtgauge-hostile|rtgauge-hostile/base)$"
)
"""Caches of Python, and folders in which something else was made."""

READERS = (
    "show {path}",
    "show {path} --json",
    "report {path} -o {out}/page.html",
    "compare {path} {record}",
    "compare --baseline {path} {record}",
    "explain {path}",
    "frequency {path}",
    "advise {path}",
    "export {path}",
    "export {path} --format parquet -o {out}/t.parquet",
    "list {path}",
    "store add {path} --store {out}/s.sqlite",
    "store add {path} --label a=b --store {out}/s.sqlite",
    "store rebuild {path} --store {out}/s.sqlite",
    "resume {path}",
    "resume {path}",
    "resume {path}",
    "tune apply {path}",
    "audit --profile {path}",
    "resume {path}",
    "sched {record} --jitter-from {path}",
    "sched {record} --execution-from {path}",
)
"""Commands that read a record or a folder of rtgauge."""
FILES = (
    "run {path}",
    "gate {path} --baseline M --candidate MI",
    "gate --known {path} --baseline M --candidate MI --target ssh://127.0.0.1:1",
    "bisect a b --plan {path}",
    "audit --rules {path}",
    "fleet {path}",
    "import files {path} --out {out}",
    "import edges {path} --stimulus A --period 1ms --out {out}",
    "sched {path}",
    "advise {record} --chart {path}",
    "probe taskset {path} --out {out}",
    "lab add x --kernel {path}",
    "lab add x --kernel {record}/run.json --modules {path}",
    "lab add x --kernel {record}/run.json --overlay {path}",
    "import {path} --out {out}",
)
STORES = (
    "store list --store {path}",
    "store show x --store {path}",
    "store rm x --store {path}",
    "store add {record} --store {path}",
    "store rebuild {record} --store {path}",
    "history x --store {path}",
    "history x --store {path} --site {out}/site",
)
REPOSITORIES = (
    "bisect a b --repository {path}",
    "export {record} --format kcidb --kernel-tree {path} -o {out}/k.json",
)
OUTPUTS = (
    "report {record} -o {path}",
    "report {record} --figures {path}",
    "compare {record} {other} --figures {path}",
    "compare {record} {other} -o {path}",
    "export {record} -o {path}",
    "frequency {record} --figures {path}",
    "import {histogram} --out {path}",
    "import files {histogram} --out {path}",
    "import edges {edges} --stimulus A --period 1ms --out {path}",
    "history x --store {store} --site {path}",
    "sched {taskset} --figure {path}",
    "fleet {plan} --out {path}",
    "probe wakeup --duration 50ms --out {path}",
    "probe wakeup --duration 50ms --samples {path} --out {out}",
    "probe tire --state {path} --out {out} --duration 50ms",
    "run quick --load idle --duration 50ms --out {path}",
    "tune --dry-run --files {path}",
    "tune --dry-run --out {path}",
    "bisect a b --out {path}",
    "selftest --dry-run --out {path}",
    "watch --duration 50ms --samples {path} --out {out} -- sleep 1",
    "watch --duration 50ms --out {path} -- sleep 1",
    "gate --out {path} --junit {path} --markdown {path} --baseline nonsense --candidate MI",
)
"""Commands that write where the path says. What a link to a folder leads to is then named by the user."""


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _foreign(path: Path) -> None:
    path.write_text("x\n")
    os.chown(path, NOBODY, NOBODY)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(LARGE)


def _folder(path: Path, owner: int = 0, mode: int = 0o755) -> None:
    path.mkdir()
    path.chmod(mode)
    os.chown(path, owner, owner)


def _deep_folder(path: Path) -> None:
    path.mkdir()
    here = os.open(path, os.O_RDONLY)
    for _ in range(500):
        os.mkdir("run.json", dir_fd=here)
        inner = os.open("run.json", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def _repository(path: Path) -> None:
    """A repository of another user whose configuration names programs."""
    subprocess.run(["git", "init", "-q", path], check=True)
    with (path / ".git/config").open("a") as file:
        file.write(f"[core]\n\tfsmonitor = touch {CANARY}\n\tpager = touch {CANARY}\n")
    for name in ("post-checkout", "pre-commit"):
        hook = path / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {CANARY}\n")
        hook.chmod(0o755)
    for each in (path, *path.rglob("*")):
        os.chown(each, NOBODY, NOBODY)


def _programs(path: Path) -> None:
    """A folder with programs, and files that name them."""
    path.mkdir()
    for name in ("git", "ssh", "sh", "rsync", "rtgauge-engine", "stress-ng"):
        (path / name).write_text(f"#!/bin/sh\ntouch {CANARY}\n")
        (path / name).chmod(0o755)
    words = f'["touch", "{CANARY}"]'
    for name in ("run.json", "bisect.json", "state.json", "session.json"):
        (path / name).write_text(
            f'{{"schema_version": 1, "command": {words}, "test": {words}, "build": {words}}}'
        )


KINDS: dict[str, Callable[[Path], object]] = {
    "missing": lambda _path: None,
    "empty folder": _folder,
    "folder of another user": lambda path: _folder(path, NOBODY),
    "folder that all can write": lambda path: _folder(path, 0, 0o777),
    "deep folder": _deep_folder,
    "folder with programs": _programs,
    "repository of another user": _repository,
    "link to a folder": lambda path: path.symlink_to(VICTIM),
    "link to a file": lambda path: path.symlink_to(VICTIM / "file"),
    "link to nothing": lambda path: path.symlink_to(VICTIM / "none"),
    "link to itself": lambda path: path.symlink_to(path),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "second name": lambda path: path.hardlink_to(VICTIM / "file"),
    "FIFO": os.mkfifo,
    "socket": _socket,
    "device zero": lambda path: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5)),
    "device null": lambda path: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3)),
    "file of another user": _foreign,
    "0 bytes": lambda path: _write(path, b""),
    "1 GB": _sparse,
    "deep JSON": lambda path: _write(path, b"[" * DEEP),
    "deep TOML": lambda path: _write(path, b"a=" + b"[" * DEEP),
    "no UTF-8": lambda path: _write(path, b'a = "\xff\xfe"\n' * 50),
    "noise": lambda path: _write(path, random.Random(1).randbytes(1 << 20)),
}
INSIDE = (
    "empty folder",
    "link to a folder",
    "link to a file",
    "link to itself",
    "link to a device",
    "second name",
    "FIFO",
    "device zero",
    "file of another user",
    "0 bytes",
    "1 GB",
    "deep JSON",
    "noise",
)
"""What a file in a folder of rtgauge becomes."""
RECORD_FILES = (
    "run.json",
    "SHA256SUMS",
    "labels.json",
    "report.html",
    "steps",
    "steps/01-wakeup-idle/step.json",
    "steps/01-wakeup-idle/windows.parquet",
    "steps/01-wakeup-idle",
    "targets",
    ".partial.tmp",
)
FLEET_FILES = (
    ".lock",
    "here",
    "here/put-aside.txt",
    "here/idle",
    "here/idle/lock",
    "here/idle/log.txt",
    "here/idle/state.json",
    "here/idle/failed",
)
STORE_FILES = ("store.sqlite-wal", "store.sqlite-shm", "store.sqlite-journal")


@dataclass(frozen=True)
class Case:
    """One command on one hostile thing. `prepare` puts it at GIVEN."""

    kind: str
    words: str
    prepare: Callable[[], object]


def _replaced(base: str, name: str, kind: str) -> Callable[[], object]:
    """Copy a folder to GIVEN, and replace a file in it."""

    def prepare() -> None:
        shutil.copytree(CASE / "base" / base, GIVEN, symlinks=True)
        path = GIVEN / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        KINDS[kind](path)

    return prepare


def cases() -> Iterator[Case]:
    """Every case."""
    for kind, make in KINDS.items():
        for words in (*READERS, *FILES, *STORES, *REPOSITORIES, *OUTPUTS):
            yield Case(kind, words, lambda make=make: make(GIVEN))
    for kind, name in itertools.product(INSIDE, RECORD_FILES):
        for words in READERS:
            yield Case(f"record, {name}: {kind}", words, _replaced("record", name, kind))
    for kind, name in itertools.product(INSIDE, FLEET_FILES):
        yield Case(f"fleet, {name}: {kind}", "fleet {plan} --out {path}", _replaced("empty", name, kind))
        yield Case(
            f"fleet, {name}: {kind}", "fleet {plan} --again --out {path}", _replaced("empty", name, kind)
        )
    for kind, name in itertools.product(INSIDE, STORE_FILES):
        for words in STORES:
            words_inside = words.replace("{path}", "{path}/store.sqlite")
            yield Case(f"store, {name}: {kind}", words_inside, _replaced("store", name, kind))


def path_options() -> set[tuple[str, str]]:
    """Return (command, argument or option) of everything that takes a path."""
    from typer.main import get_command

    from rtgauge.cli.main import app

    named = {"DIR", "FILE", "RECORD", "STORE", "PLAN"}
    found: set[tuple[str, str]] = set()

    def walk(command: Any, words: tuple[str, ...]) -> None:
        command = getattr(command, "made", command)
        for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
            walk(command.get_command(None, name), (*words, name))
        for option in command.params:
            if named & set((option.metavar or "").split("|")):
                opt = max(option.opts, key=len)
                found.add((" ".join(words), opt if opt.startswith("-") else ""))

    walk(get_command(app), ())
    return found


def check_covered() -> list[str]:
    """Return what takes a path and is in no case. Probes share their options."""
    every = (*READERS, *FILES, *STORES, *REPOSITORIES, *OUTPUTS)
    missing: list[str] = []
    for command, option in sorted(path_options()):
        if command.startswith("probe ") and option in {"--out", "--samples"}:
            continue
        short = "-o" if option == "--out" else option
        if not any(
            words.startswith(f"{command} ") and (not option or re.search(rf"(^| )({option}|{short}) ", words))
            for words in every
        ):
            missing.append(f"{command} {option}".strip())
    return missing


def _build() -> None:
    """Make what the cases need, below CASE/base."""
    from tests.support.records import Shape, write_record

    from rtgauge_ext.store.adding import add
    from rtgauge_ext.store.store import Store

    base = CASE / "base"
    for name in ("empty", "store", "made"):
        (base / name).mkdir(parents=True)
    made = write_record(base / "made", Shape(seed=1, seconds=2, loads=("idle",), cpus=(0,)))
    other = write_record(base / "made", Shape(seed=2, seconds=2, loads=("idle",), cpus=(0,)))
    made.rename(base / "record")
    other.rename(base / "other")
    add(Store.open(base / "store/store.sqlite", make=True), base / "record")
    (base / "plan.toml").write_text(
        'tries = 1\n[[boards]]\nname = "here"\ntarget = "ssh://127.0.0.1:1"\n[[jobs]]\nname = "idle"\n'
    )
    (base / "taskset.toml").write_text('[[task]]\nname = "a"\nperiod = "1ms"\nwcet = "100us"\n')
    (base / "histogram").write_text("# Histogram\n000001 000010\n# Total: 10\n")
    (base / "edges.csv").write_text("Time [s],A\n" + "".join(f"{i / 1000},{i % 2}\n" for i in range(50)))
    VICTIM.mkdir()
    (VICTIM / "file").write_text(PRECIOUS)


def _words(text: str) -> list[str]:
    base = CASE / "base"
    places = {
        "path": GIVEN,
        "out": OUT,
        "record": base / "record",
        "other": base / "other",
        "plan": base / "plan.toml",
        "store": base / "store/store.sqlite",
        "taskset": base / "taskset.toml",
        "histogram": base / "histogram",
        "edges": base / "edges.csv",
    }
    return [word.format(**places) for word in text.split()]


def _run(words: list[str]) -> tuple[int, str, float]:
    """Run a command in a child; return its status, what it printed on standard error, and its time."""
    from rtgauge.cli.main import main

    said = Path("/dev/shm/said")
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(CASE)
        sys.argv = ["rtgauge", *words]
        with said.open("wb") as errors, open(os.devnull, "r+b") as null:  # noqa: PTH123
            os.dup2(null.fileno(), 0)
            os.dup2(null.fileno(), 1)
            os.dup2(errors.fileno(), 2)
        status = 1
        try:
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:  # noqa: BLE001 - everything that ends it
            traceback.print_exc()
            status = 99
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        took_s = time.monotonic() - began
        if ended:
            return os.waitstatus_to_exitcode(status), said.read_text(errors="replace"), took_s
        if took_s > LONGEST_S:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -signal.SIGKILL, said.read_text(errors="replace"), took_s
        time.sleep(0.005)


def _written(upper: Path, before: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Return what the overlay has of its own: path -> time and size."""
    found: dict[str, tuple[int, int]] = {}
    for folder, names, files in os.walk(upper):
        inside = f"/{Path(folder).relative_to(upper)}" if folder != str(upper) else ""
        names[:] = [name for name in names if not f"{inside}/{name}".startswith(MAY_CHANGE)]
        for name in (*names, *files):
            path = f"{inside}/{name}"
            if not path.startswith(MAY_CHANGE) and not SETTLED.search(path):
                about = os.lstat(f"{folder}/{name}")
                found[path] = about.st_mtime_ns, about.st_size
    return {path: now for path, now in found.items() if before.get(path) != now}


def _fault(status: int, said: str, took_s: float) -> str | None:
    if took_s > LONGEST_S:
        return f"takes more than {LONGEST_S:g} s"
    if "Traceback" in said or "defect in rtgauge" in said or status in {99, 134, 139}:
        frames = re.findall(r'File "[^"]*/(rtgauge/[^"]+)", line ([0-9]+)', said)
        return f"traceback {frames[-1] if frames else ''} {said.strip().splitlines()[-1][:150]}"
    return f"status {status}" if status not in {0, 1, 2, 3, 4} else None


def inside(given: argparse.Namespace, upper: Path) -> int:
    """Try the cases in the overlay, which is the root already; 1 if one has a fault."""
    import numpy as np  # noqa: F401 - before the forks
    import polars as pl  # noqa: F401

    missing = check_covered()
    if missing:
        print("these take a path and are in no case:", ", ".join(missing))
        return 2
    child = os.fork()  # polars starts threads when it is used, which a fork does not copy
    if child == 0:
        _build()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        return 2
    every = [case for case in cases() if given.only is None or given.only in f"{case.kind} {case.words}"]
    chosen = (
        every
        if given.number is None
        else random.Random(given.seed).sample(every, min(given.number, len(every)))
    )
    before = _written(upper, {})
    faults: Counter[str] = Counter()
    statuses: Counter[int] = Counter()
    slowest, began = (0.0, ""), time.monotonic()
    for case in chosen:
        shutil.rmtree(OUT, ignore_errors=True)
        OUT.mkdir()
        if GIVEN.is_dir() and not GIVEN.is_symlink():
            shutil.rmtree(GIVEN)
        GIVEN.unlink(missing_ok=True)
        case.prepare()
        before |= _written(upper, before)
        status, said, took_s = _run(_words(case.words))
        statuses[status] += 1
        slowest = max(slowest, (took_s, f"{case.words} ({case.kind})"))
        found = [each] if (each := _fault(status, said, took_s)) else []
        changed = _written(upper, before)
        named = case.words in OUTPUTS and "link" in case.kind
        found += [
            f"writes {path}" for path in sorted(changed) if not (named and path.startswith(str(VICTIM)))
        ]
        before |= changed
        if named:
            shutil.rmtree(VICTIM)
            VICTIM.mkdir()
            (VICTIM / "file").write_text(PRECIOUS)
            before |= _written(upper, before)
        elif (VICTIM / "file").read_bytes() != PRECIOUS.encode():
            found.append("changes what a link leads to")
            (VICTIM / "file").write_text(PRECIOUS)
        if CANARY.exists():
            found.append("runs what a file names")
            CANARY.unlink()
        for each in found:
            print(f"{case.words} ({case.kind}): {each}", flush=True)
            faults[each] += 1
    print(
        f"{len(chosen)} of {len(every)} cases in {time.monotonic() - began:.0f} s; slowest "
        f"{slowest[0]:.1f} s: {slowest[1]}"
    )
    print(f"exit status: {dict(sorted(statuses.items()))}")
    print(f"faults: {faults.total()}")
    return bool(faults)


def main() -> int:
    """Start this program again on an overlay, in a mount namespace of its own."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--number", type=int)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only")
    options.add_argument("--overlay", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.overlay is not None:
        overlay = given.overlay
        for name in ("upper", "work", "root"):
            (overlay / name).mkdir()
        layers = f"lowerdir=/,upperdir={overlay}/upper,workdir={overlay}/work"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, overlay / "root"], check=True)
        for name in ("proc", "sys", "dev"):
            subprocess.run(["mount", "--rbind", f"/{name}", overlay / "root" / name], check=True)
        for name in ("run", "tmp", "dev/shm"):
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", overlay / "root" / name], check=True
            )
        seen = overlay / "root/mnt"
        subprocess.run(["mount", "--bind", overlay / "upper", seen], check=True)
        os.chroot(overlay / "root")
        os.chdir("/")
        os.umask(0o022)
        return inside(given, Path("/mnt"))
    if os.geteuid():
        sys.exit("run this as root: it makes a mount namespace, devices and files of other users")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mount", "--version"], check=True, stdout=subprocess.DEVNULL)
        script = 'mount -t tmpfs tmpfs "$1"; shift; exec "$@"'
        words = [sys.executable, __file__, *sys.argv[1:], "--overlay", folder]
        return subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", folder, *words],
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
