# SPDX-License-Identifier: MIT
"""Controls a machine over SSH as a target.

Nothing is installed there: during the session, the engine is in a temporary folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Self, cast

from pydantic import Field, TypeAdapter, ValidationError

from rtgauge.errors import MeasureError
from rtgauge.target.file_batch import Files, FilesRead, files_of
from rtgauge.target.guard import (
    ANSWER_S,
    LEASE_NS,
    GuardWatch,
    LeaseKeeper,
    agent_answers,
    agent_words,
    expect_word,
    guard_gone,
    guard_words,
    session_words,
    wait_until_held,
)
from rtgauge.target.ssh_address import SshAddress
from rtgauge.target.ssh_connection import PATIENCE_S, CommandOutput, SshConnection
from rtgauge.target.ssh_errors import ConnectionBroken
from rtgauge.target.ssh_folder import ENGINES, NAME, REMOVE, InstalledEngine, find_again, install
from rtgauge.target.ssh_guarded import SshGuarded, attach, launch
from rtgauge.target.target_protocol import BOOT_ID, MOST_FETCHED, AtHeld, Completed, ProgramPlace
from rtgauge.units import NS_PER_S

READ = 'exec "$1" read -'
WHICH = """
set -f
IFS=:
case $1 in /*) [ -f "$1" ] && [ -x "$1" ] && echo "$1" && exit 0 ;; esac
for folder in $PATH /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
	[ -f "$folder/$1" ] && [ -x "$folder/$1" ] && echo "$folder/$1" && exit 0
done
exit 1
"""
RUN = (
    'cd / && engine=$1 run=$2 lease=$3 && shift 3 && exec "$engine" guard --run "$run" --lease-ns '
    '"$lease" -- "$@"'
)
GIVE = 'exec cat -- "$1"'
MAKE = 'umask 077; mkdir "$1"'
TAKE = 'umask 077; mkdir "$1" && cat >"$1/$2" && chmod "$3" "$1/$2"'
COPY = """
umask 077
[ -f "$4" ] && [ "$(sha256sum <"$4")" = "${4##*/}  -" ] && mkdir "$1" && cp "$4" "$1/$2" && chmod "$3" "$1/$2"
"""
SET_UP_FAILED = 127
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
KEEP = 'umask 077; cat >"$1"'
SESSION, ABOUT = "session", "about"
PROGRAM, FILES = "program", "files"
LEAVE_S = 15.0
MOST_FILES = 10_000
OTHERS_END_S = 20.0
"""How long (s) to wait for the other end of a broken connection, which gives up after 15 s of silence."""


def session_name(written: Any) -> str | None:
    """Return the name of a session's folder from `written`, a `Target.session` in a record; None if it has no
    such name.

    Nothing else comes from the record. The rest is in the folder, which `find_again` accepts only in a place
    in which rtgauge makes such folders.
    """
    name = cast("dict[str, Any]", written).get("name") if isinstance(written, dict) else None
    return name if isinstance(name, str) and NAME.fullmatch(name) else None


@dataclass(frozen=True)
class SshSession:
    """A session as its file `about` on the target describes it, so that another process can continue it."""

    run_id: str
    boot_id: str
    lease_ns: Annotated[int, Field(gt=0)]

    @classmethod
    def from_json(cls, written: bytes) -> SshSession | None:
        """Parse the file `about`; None if it does not describe a session."""
        try:
            return TypeAdapter(cls).validate_json(written, strict=True)
        except ValidationError:
            return None


def read_files(connection: SshConnection, engine: str, paths: Iterable[str]) -> FilesRead:
    """Run the engine's verb `read` on the target. Raises MeasureError if that fails."""
    answer = connection.run(READ, [engine], "\0".join([*paths, ""]).encode(errors="surrogateescape"))
    try:
        return files_of(answer.stdout)
    except ValueError:
        failed = f"the engine's command read failed (exit status {answer.status})"
        raise MeasureError(failed, on=connection.address.name) from None


class SshTarget:
    """A machine over SSH. It is locked while it is open, so that a second run is refused."""

    def __init__(
        self,
        address: SshAddress,
        run_id: str,
        label: str,
        *,
        lease_ns: int = LEASE_NS,
        session: str | None = None,
        wait_s: float = 0.0,
        at_held: AtHeld | None = None,
    ) -> None:
        """Connect, copy the engine, and lock the target for the run `run_id`, or continue the session named
        `session` if it still lives.

        `label`: the text that another run shows when it is refused. `lease_ns`: how long everything continues
        on the target if the connection breaks for good. `wait_s`, `at_held`: as in `open_target`. Raises
        MeasureError if the target cannot be reached or locked.
        """
        self.name = address.name
        self.run_id = run_id
        self.restored_before: list[dict[str, Any]] = []
        self.picked_up = False
        self._label = label
        self._lease_ns = lease_ns
        self._wait_s, self._at_held = wait_s, at_held
        self._running: list[SshGuarded] = []
        self._checking = threading.Lock()
        self._put: dict[Path, str] = {}
        self._folders: dict[Path, str] = {}
        self._boot_id = ""
        self._open(address, session)

    def _open(self, address: SshAddress, session: str | None) -> None:
        self._keeper = LeaseKeeper()
        self._connection = SshConnection(address)
        self._guard: SshGuarded | None = None
        self._installed: InstalledEngine | None = None
        try:
            if session is None or not self._pick_up(session):
                self._lock()
        except BaseException as error:
            # Programs on the target continue if another process started them, or if the connection broke.
            if self._installed is not None and self._guard is None and session is None:
                self._remove()
            self.let_go() if session is not None or isinstance(error, ConnectionBroken) else self.close()
            raise

    def begin_anew(self, reboot: Callable[[], SshAddress]) -> None:
        """Release the machine, let `reboot` boot it, and open it at its new address.

        Raises MeasureError if that fails. The target is then closed, and the caller may try again.
        """
        self.close()
        self._folders.clear()
        self._open(reboot(), None)

    def _lock(self) -> None:
        """Copy the engine. Wait until this run holds the machine and earlier runs' settings are restored.

        Raises MeasureError if another run holds it, or the engine does not answer as expected.
        """
        installed = install(self._connection)
        self._installed = installed
        session = session_words(self.run_id, self._label, self._lease_ns, self._wait_s)
        self._guard = launch(
            self._connection,
            installed.engine,
            f"{installed.folder}/{SESSION}",
            [installed.engine, *session, "--detach"],
            keeper=self._keeper,
            log=None,
            home=installed.folder,
        )
        wait_until_held(self._guard.lines, self._wait_s, self, self._at_held, self.name)
        self._boot_id = self._read_boot_id(installed)
        about = json.dumps(asdict(SshSession(self.run_id, self._boot_id, self._lease_ns)))
        self._checked(self._connection.run(KEEP, [f"{installed.folder}/{SESSION}/{ABOUT}"], about.encode()))

    def _read_boot_id(self, installed: InstalledEngine) -> str:
        return read_files(self._connection, installed.engine, [BOOT_ID]).files.text(BOOT_ID) or ""

    def _pick_up(self, name: str) -> bool:
        """Continue an earlier session. Return False if it has ended on the target.

        Raises ConnectionBroken if another process still follows it, or if the target cannot be reached.
        """
        installed = find_again(self._connection, name)
        if installed is None:
            return False
        deadline = time.monotonic() + OTHERS_END_S
        while True:
            try:
                session = SshSession.from_json(
                    self._connection.run(GIVE, [f"{installed.folder}/{SESSION}/{ABOUT}"]).stdout
                )
                if session is None or self._read_boot_id(installed) != session.boot_id:
                    return False
                guard = attach(
                    self._connection,
                    installed.engine,
                    f"{installed.folder}/{SESSION}",
                    keeper=self._keeper,
                    log=None,
                )
                break
            except ConnectionBroken:
                # The other end of a broken connection may need some seconds to notice.
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)
            except MeasureError:
                return False
        if not _lives(guard):
            return False
        self._guard, self._installed = guard, installed
        self.run_id, self._lease_ns, self._boot_id = session.run_id, session.lease_ns, session.boot_id
        self.picked_up = True
        return True

    @property
    def _here(self) -> InstalledEngine:
        assert self._installed is not None  # noqa: S101 - set before anything is run
        return self._installed

    @property
    def machine(self) -> str:
        """The output of `uname -m` on the target."""
        return self._here.machine

    @property
    def session(self) -> dict[str, Any] | None:
        """The session's name, with which another process can continue it (`session_name`)."""
        return None if self._guard is None else {"name": self._here.name}

    def expect(self, seconds: float) -> None:
        """Tell waiting runs how much longer this run will need."""
        if self._guard is not None:
            self._guard.send(expect_word(seconds).decode().strip())

    def check(self) -> None:
        """Raise MeasureError if this run no longer holds the target."""
        with self._checking:
            if self._guard is None or not self._guard.followed():
                raise guard_gone(self._lease_ns, self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if isinstance(error, ConnectionBroken):
            self.let_go()
        else:
            self.close()

    def read(self, paths: Iterable[str]) -> Files:
        """Read files and globs in one batch. Raises MeasureError if that fails."""
        try:
            return read_files(self._connection, self._here.engine, paths).files
        except ConnectionBroken:
            raise
        except MeasureError:
            self._check_if_locked()
            raise

    def _check_if_locked(self) -> None:
        """If the run's guard has ended, raise that as the cause: the guard removes the engine, too."""
        if self._guard is not None:
            self.check()

    def monotonic_ns(self) -> int:
        """Return the target's CLOCK_MONOTONIC in ns."""
        return read_files(self._connection, self._here.engine, ["/proc/uptime"]).time_ns

    def which(self, program: str) -> str | None:
        """Return the path of a program on the target, given its name or path; None if it is missing."""
        answer = self._connection.run(WHICH, [program])
        path = answer.stdout.decode(errors="surrogateescape").rstrip("\n")
        return path if answer.status == 0 and path.startswith("/") else None

    def run(self, argv: Sequence[str], timeout_s: float) -> Completed:
        """Run a short command to its end. A command that takes too long is ended on the target."""
        words = [self._here.engine, self.run_id, str(max(1_000_000, round(timeout_s * NS_PER_S))), *argv]
        channel = self._connection.channel(RUN, words)
        # Its standard input stays open, because closing it would end the command. The lease limits its time.
        limit_s = timeout_s + PATIENCE_S
        marked = channel.skip_to_mark()
        try:
            output = channel.read_all(limit_s) if marked else b""
        except TimeoutError:
            channel.kill()
            raise channel.silent(limit_s) from None
        except MeasureError:
            channel.kill()
            raise
        status, _ = channel.finish()
        return Completed(SET_UP_FAILED if status is None else status, output.decode(errors="replace"))

    @property
    def controllers(self) -> list[int]:
        """The process id of the session's guard; rtgauge itself runs on another machine."""
        return [] if self._guard is None else [self._guard.pid]

    def start(self, argv: Sequence[str], log: BinaryIO | None = None, group: str | None = None) -> SshGuarded:
        """Run a program under a guard. It continues if the connection breaks."""
        installed = self._here
        argv = argv if group is None else [installed.engine, "enter", group, *argv]
        guard = [installed.engine, *guard_words(self.run_id, self._lease_ns), "--detach", "--status-fd", "3"]
        program = launch(
            self._connection,
            installed.engine,
            f"{installed.folder}/{_new_name(PROGRAM)}",
            [*guard, "--", *argv],
            keeper=self._keeper,
            log=log,
        )
        self._watch(program, log)
        self._running = [running for running in self._running if not running.over]
        self._running.append(program)
        return program

    def engine(self, *arguments: str, group: str | None = None) -> SshGuarded:
        """Run a verb of the engine under a guard."""
        return self.start([self._here.engine, *arguments], group=group)

    def agent(self, verb: str, *arguments: str) -> list[dict[str, Any]]:
        """Run `set`, `gather` or `restore` for this run (`restore --stale`: for dead runs). Return its
        answers, one per line.

        The session's guard owns the settings. Raises MeasureError if the verb failed.
        """
        owner = None if self._guard is None else self._guard.pid
        words = agent_words(verb, arguments, self.run_id, owner)
        answer = self._connection.run('exec "$@"', [self._here.engine, *words])
        return agent_answers(verb, answer.stdout, answer.status, self.name)

    def try_engine(self, *arguments: str) -> bytes:
        """Return the output of an engine verb that ends immediately."""
        return self._connection.run('exec "$@"', [self._here.engine, *arguments]).stdout

    def attach(self, kept: ProgramPlace, log: BinaryIO | None = None) -> SshGuarded:
        """Follow a program of a continued session, from the beginning of its output.

        Raises MeasureError if the program is gone.
        """
        program = attach(
            self._connection,
            self._here.engine,
            f"{self._here.folder}/{kept['name']}",
            keeper=self._keeper,
            log=log,
        )
        self._watch(program, log)
        self._running.append(program)
        return program

    def _watch(self, program: SshGuarded, log: BinaryIO | None) -> None:
        """Make the reading of the program's lines fail if the run's own guard is gone."""
        if log is None:
            program.watch = GuardWatch(self.check, lambda: program.send("stop"))

    def put(self, file: Path) -> str:
        """Copy the file once into the session's folder; return its path there. If the file is
        executable, so is the copy.
        """
        if file not in self._put or not self._put[file].startswith(f"{self._here.folder}/"):
            place = f"{self._here.folder}/{_new_name('put')}"
            words = [place, file.name, "700" if os.access(file, os.X_OK) else "600"]
            if not self._copied_there(file, words):
                with file.open("rb") as content:
                    self._checked(self._connection.run(TAKE, words, content))
            self._put[file] = f"{place}/{file.name}"
        return self._put[file]

    def _copied_there(self, file: Path, words: list[str]) -> bool:
        """Copy a file on the target itself, if the target may already have it. Return whether the file was
        copied.
        """
        if not self._connection.address.has_engines:
            return False
        return (
            self._connection.run(
                COPY, [*words, f"/{ENGINES}/{hashlib.sha256(file.read_bytes()).hexdigest()}"]
            ).status
            == 0
        )

    def files_folder(self, folder: Path) -> str:
        """Return a folder on the target for files that belong in `folder`."""
        if folder not in self._folders:
            place = f"{self._here.folder}/{_new_name('files')}"
            self._checked(self._connection.run(MAKE, [place]))
            self._folders[folder] = place
        return self._folders[folder]

    def use_files_folder(self, folder: Path, place: str) -> None:
        """Use the folder that `files_folder(folder)` made for an earlier process. `place`: its name."""
        self._folders[folder] = f"{self._here.folder}/{place}"

    def fetch(self, folder: Path, most_bytes: int = MOST_FETCHED) -> None:
        """Move the files that programs wrote into `files_folder(folder)` to this machine.

        Raises MeasureError if that fails, or if the files exceed `most_bytes`.
        """
        place = self._folders.get(folder)
        if place is None:
            return
        names = self.read([place]).entries(place)
        if len(names) > MOST_FILES:
            many = f"the target has {len(names)} files to fetch, more than a measurement can create"
            raise MeasureError(many, on=self.name)
        left = most_bytes
        for name in names:
            if not FILE_NAME.fullmatch(name) or (folder / name).exists():
                odd = f"the target reports a file '{name[:100]}' that it should not have created"
                raise MeasureError(odd, on=self.name)
            left -= self._fetch_file(f"{place}/{name}", folder / name, left)
        self._connection.run(REMOVE, [place])
        del self._folders[folder]

    def _fetch_file(self, remote: str, local: Path, most_bytes: int) -> int:
        """Copy one file to this machine; return its size.

        Raises MeasureError if it exceeds `most_bytes`, ConnectionBroken if the connection ends.
        """
        size = 0
        channel = self._connection.channel(GIVE, [remote])
        try:
            with local.open("xb") as file:
                if channel.skip_to_mark():
                    while piece := channel.piece(PATIENCE_S):
                        size += len(piece)
                        if size > most_bytes:
                            large = (
                                f"fetching stopped at {local.name}: the files are larger than a measurement "
                                "can create"
                            )
                            raise MeasureError(large, on=self.name)
                        file.write(piece)
        except TimeoutError:
            channel.kill()
            local.unlink(missing_ok=True)
            raise channel.silent(PATIENCE_S) from None
        except BaseException:
            channel.kill()
            local.unlink(missing_ok=True)
            raise
        status, stderr = channel.finish()
        if status is None:
            raise ConnectionBroken(f"the connection broke while {local.name} was being fetched", on=self.name)
        if status:
            raise MeasureError(f"{local.name} cannot be fetched: {stderr.strip()[:200]}", on=self.name)
        return size

    def _checked(self, answer: CommandOutput) -> None:
        if answer.status:
            self._check_if_locked()
            ended = f"a command ended with status {answer.status}"
            raise MeasureError(answer.stderr.strip()[:200] or ended, on=self.name)

    def end_others(self, kept: Sequence[str]) -> None:
        """End what an earlier process started in this session, except programs in the folders `kept`."""
        folder = self._here.folder
        names = self.read([folder]).entries(folder)
        places = [f"{folder}/{name}" for name in names if name.startswith(PROGRAM) and name not in kept]
        statuses = self.read([f"{place}/status" for place in places]) if places else Files()
        started = re.compile(r'\{"type":"guard","event":"started","guard":([0-9]{1,10}),')
        pids = [match[1] for text in statuses.texts() if (match := started.match(text))]
        # Another process may have this process id by now. Only a guard of ours runs the engine at this path,
        # which contains our random folder.
        lines = self.read([f"/proc/{pid}/cmdline" for pid in pids]) if pids else Files()
        guard = f"{self._here.engine}\0guard\0"
        ours = [pid for pid in pids if (lines.text(f"/proc/{pid}/cmdline") or "").startswith(guard)]
        if ours:
            self._connection.run('kill "$@"', ours)

    def let_go(self) -> None:
        """Leave everything on the target running, until its lease ends or a process picks it up."""
        for program in [*self._running, *([self._guard] if self._guard is not None else [])]:
            program.let_go()
        self._running.clear()
        self._guard = None
        self._keeper.close()
        self._connection.close()

    def close(self) -> None:
        """End the programs that still run, restore settings, release the machine, and remove the folder."""
        for program in self._running:
            program.stop()
        if self._guard is not None:
            # The guard removes the folder when the guard ends, at the latest with its lease.
            with contextlib.suppress(MeasureError):
                if self._guard.followed():
                    self._guard.send("stop")
            self._guard.wait(LEAVE_S)
        self.let_go()

    def _remove(self) -> None:
        with contextlib.suppress(MeasureError):
            self._connection.run(REMOVE, [self._here.folder])


def _lives(guard: SshGuarded) -> bool:
    """Return whether the attached session still holds its target: its output has not ended."""
    for text in guard.lines(ANSWER_S):
        if b'"event":"ended"' in text:
            guard.let_go()
            return False
        if b'"event":"started"' in text:
            return guard.followed()
    return False


def _new_name(kind: str) -> str:
    """Return a new name for a folder in the session's folder."""
    return f"{kind}-{secrets.token_hex(4)}"
