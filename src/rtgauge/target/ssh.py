# SPDX-License-Identifier: MIT
"""A machine over SSH as a target.

Nothing is installed there: the engine lives in a temporary folder as long as the session.
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
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Self, cast

from pydantic import Field, TypeAdapter, ValidationError

from rtgauge.errors import MeasureError
from rtgauge.lab.image import ENGINES
from rtgauge.target.answers import FilesRead, answer_of, answers_of, files_of
from rtgauge.target.guard import (
    LEASE_NS,
    GuardWatch,
    LeaseKeeper,
    expect_word,
    guard_error,
    guard_gone,
    holder_of,
    session_words,
)
from rtgauge.target.ssh_connection import PATIENCE_S, Answer, SshConnection
from rtgauge.target.ssh_errors import ConnectionBroken
from rtgauge.target.ssh_folder import NAME, REMOVE, Installed, find_again, install
from rtgauge.target.ssh_guarded import SshGuarded, attach, launch
from rtgauge.target.target import BOOT_ID, MOST_FETCHED, Completed
from rtgauge.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from rtgauge.target.address import SshAddress
    from rtgauge.target.target import AtHeld, ProgramPlace

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
SESSION_S = 300.0
"""How long a guard may say nothing while it puts back what dead runs had left."""
MOST_RESTORED = 100_000
MOST_FILES = 10_000
OTHERS_END_S = 20.0
"""How long another end of a broken connection is waited for; it gives up after 15 s without a word."""


def session_name(written: Any) -> str | None:
    """The name of a session's folder on a target, as a record has it; None if it is none.

    Nothing else comes from the record. The rest is in the folder, which must be where we make such folders,
    and is checked (`find_again`).
    """
    name = cast("dict[str, Any]", written).get("name") if isinstance(written, dict) else None
    return name if isinstance(name, str) and NAME.fullmatch(name) else None


@dataclass(frozen=True)
class Session:
    """A session as the file `about` in its folder there says, for another process that continues it."""

    run_id: str
    boot_id: str
    lease_ns: Annotated[int, Field(gt=0)]

    @classmethod
    def from_json(cls, written: bytes) -> Session | None:
        """None if it is none."""
        try:
            return TypeAdapter(cls).validate_json(written, strict=True)
        except ValidationError:
            return None


def read_files(connection: SshConnection, engine: str, paths: Iterable[str]) -> FilesRead:
    """The answer of the engine's verb `read` on the target. Raises MeasureError."""
    answer = connection.run(READ, [engine], "\0".join([*paths, ""]).encode(errors="surrogateescape"))
    try:
        return files_of(answer.stdout)
    except ValueError:
        raise MeasureError(
            f"{connection.address.name}: the engine's verb read failed (exit status {answer.status})"
        ) from None


class SshTarget:
    """A machine over SSH. While it is open it is locked: a second run on it is refused."""

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
        """Connect, copy the engine, lock the target for the run `run_id`; or go on with the session of the
        name `session` where that still lives.

        `label`: what a refused second run is told. `lease_ns`: how long everything goes on there when the
        connection breaks and does not come back. `wait_s`, `at_held`: as of `open_target`. Raises
        MeasureError.
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
        self._installed: Installed | None = None
        try:
            if session is None or not self._pick_up(session):
                self._lock()
        except BaseException as error:
            # What another process has started, or a connection that broke, is no reason to end what goes on
            # there.
            if self._installed is not None and self._guard is None and session is None:
                self._remove()
            self.let_go() if session is not None or isinstance(error, ConnectionBroken) else self.close()
            raise

    def begin_anew(self, reboot: Callable[[], SshAddress]) -> None:
        """Give the machine free, let `reboot` boot it, and open it again where it then is.

        Raises MeasureError: it is closed then, and may be begun anew.
        """
        self.close()
        self._folders.clear()
        self._open(reboot(), None)

    def _lock(self) -> None:
        """Copy the engine, wait until the machine is ours and what an earlier run had left is put back.

        Raises MeasureError.
        """
        here = install(self._connection)
        self._installed = here
        words = [
            here.engine,
            *session_words(self.run_id, self._label, self._lease_ns, self._wait_s),
            "--detach",
        ]
        self._guard = launch(
            self._connection,
            here.engine,
            f"{here.folder}/{SESSION}",
            words,
            keeper=self._keeper,
            log=None,
            home=here.folder,
        )
        self._take_answers(self._guard)

    def _take_answers(self, guard: SshGuarded) -> None:
        for text in guard.lines(SESSION_S + self._wait_s):
            line = answer_of(text)
            if line is None:
                break
            holder = holder_of(line)
            if holder is not None and self._at_held is not None:
                self._at_held(self, holder)
            if line.get("type") == "restore":
                self.restored_before.append(line)
                if len(self.restored_before) > MOST_RESTORED:
                    break
            if line.get("type") == "error":
                raise guard_error(line, self.name)
            if line.get("type") == "guard" and holder is None:
                self._boot_id = self._read_boot_id(self._here)
                about = json.dumps(asdict(Session(self.run_id, self._boot_id, self._lease_ns)))
                self._checked(
                    self._connection.run(KEEP, [f"{self._here.folder}/{SESSION}/{ABOUT}"], about.encode())
                )
                return
        raise MeasureError(
            f"{self.name}: the engine does not answer like the one that came with this rtgauge"
        )

    def _read_boot_id(self, here: Installed) -> str:
        return str(
            read_files(self._connection, here.engine, [BOOT_ID]).files.get(BOOT_ID, {}).get("text", "")
        ).strip()

    def _pick_up(self, name: str) -> bool:
        """Go on with an earlier session; False: it has ended there.

        Raises MeasureError if another process follows it.
        """
        here = find_again(self._connection, name)
        if here is None:
            return False
        deadline = time.monotonic() + OTHERS_END_S
        while True:
            try:
                session = Session.from_json(
                    self._connection.run(GIVE, [f"{here.folder}/{SESSION}/{ABOUT}"]).stdout
                )
                if session is None or self._read_boot_id(here) != session.boot_id:
                    return False
                guard = attach(
                    self._connection, here.engine, f"{here.folder}/{SESSION}", keeper=self._keeper, log=None
                )
                break
            except ConnectionBroken:
                # The other end of a connection that broke may take some seconds to see it.
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)
            except MeasureError:
                return False
        if not _lives(guard):
            return False
        self._guard, self._installed = guard, here
        self.run_id, self._lease_ns, self._boot_id = session.run_id, session.lease_ns, session.boot_id
        self.picked_up = True
        return True

    @property
    def _here(self) -> Installed:
        assert self._installed is not None  # noqa: S101 - set before anything is run
        return self._installed

    @property
    def machine(self) -> str:
        """What `uname -m` says on the target."""
        return self._here.machine

    @property
    def session(self) -> dict[str, Any] | None:
        """For who goes on with it (`session_name`)."""
        return None if self._guard is None else {"name": self._here.name}

    def expect(self, seconds: float) -> None:
        """Tell those who wait how much longer this run will need."""
        if self._guard is not None:
            self._guard.say(expect_word(seconds).decode().strip())

    def check(self) -> None:
        """Raises MeasureError if the target is ours no longer."""
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

    def read(self, paths: Iterable[str]) -> Mapping[str, dict[str, Any]]:
        """Files and globs in one batch."""
        return read_files(self._connection, self._here.engine, paths).files

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC of the target."""
        return read_files(self._connection, self._here.engine, ["/proc/uptime"]).time_ns

    def which(self, program: str) -> str | None:
        """Path of a program on the target, by its name or its path."""
        answer = self._connection.run(WHICH, [program])
        path = answer.stdout.decode(errors="surrogateescape").rstrip("\n")
        return path if answer.status == 0 and path.startswith("/") else None

    def run(self, argv: Sequence[str], timeout_s: float) -> Completed:
        """Run a short command to its end; what does not end in time is ended there."""
        words = [self._here.engine, self.run_id, str(max(1_000_000, round(timeout_s * NS_PER_S))), *argv]
        channel = self._connection.channel(RUN, words)
        # Its standard input stays open, since its end would end the command; the lease is its time limit.
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
        """The session's guard: rtgauge itself runs elsewhere."""
        return [] if self._guard is None else [self._guard.pid]

    def start(self, argv: Sequence[str], log: BinaryIO | None = None, group: str | None = None) -> SshGuarded:
        """Run a program under guard, which goes on when the connection breaks."""
        here = self._here
        argv = argv if group is None else [here.engine, "enter", group, *argv]
        words = [
            here.engine,
            "guard",
            "--run",
            self.run_id,
            "--lease-ns",
            str(self._lease_ns),
            "--detach",
            "--status-fd",
            "3",
            "--",
            *argv,
        ]
        program = launch(
            self._connection,
            here.engine,
            f"{here.folder}/{_new_name(PROGRAM)}",
            words,
            keeper=self._keeper,
            log=log,
        )
        self._watch(program, log)
        self._running = [running for running in self._running if not running.over]
        self._running.append(program)
        return program

    def engine(self, *arguments: str, group: str | None = None) -> SshGuarded:
        """Run a verb of the engine under guard."""
        return self.start([self._here.engine, *arguments], group=group)

    def agent(self, verb: str, *arguments: str) -> list[dict[str, Any]]:
        """`set` or `restore` for this run (`restore --stale`: of dead runs): its answers, line by line.

        The session's guard owns what is set.

        Raises MeasureError if it did nothing.
        """
        run = [] if "--stale" in arguments else ["--run", self.run_id]
        owner = ["--owner-pid", str(self._guard.pid)] if verb == "set" and self._guard is not None else []
        answer = self._connection.run('exec "$@"', [self._here.engine, verb, *run, *owner, *arguments])
        try:
            answers = answers_of(answer.stdout)
        except ValueError:
            raise MeasureError(
                f"{self.name}: the engine's verb {verb} failed (exit status {answer.status})"
            ) from None
        for line in answers:
            if line.get("type") == "error":
                raise MeasureError(f"{self.name}: {line.get('message')}")
        return answers

    def try_engine(self, *arguments: str) -> bytes:
        """What a verb of the engine prints that ends at once."""
        return self._connection.run('exec "$@"', [self._here.engine, *arguments]).stdout

    def attach(self, kept: ProgramPlace, log: BinaryIO | None = None) -> SshGuarded:
        """Follow a program of a session that was picked up, from the beginning of its output.

        Raises MeasureError if it is gone.
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
        """Whoever reads the program's lines is told if the run's own guard is gone."""
        if log is None:
            program.watch = GuardWatch(self.check, lambda: program.say("stop"))

    def put(self, file: Path) -> str:
        """A copy of the file in the session's folder, made once; a program can be started there too."""
        if file not in self._put or not self._put[file].startswith(f"{self._here.folder}/"):
            place = f"{self._here.folder}/{_new_name('put')}"
            words = [place, file.name, "700" if os.access(file, os.X_OK) else "600"]
            if not self._copied_there(file, words):
                with file.open("rb") as content:
                    self._checked(self._connection.run(TAKE, words, content))
            self._put[file] = f"{place}/{file.name}"
        return self._put[file]

    def _copied_there(self, file: Path, words: list[str]) -> bool:
        """Whether the target, a guest of the lab, had the same file, and it was copied there."""
        if self._connection.address.guest is None:
            return False
        return (
            self._connection.run(
                COPY, [*words, f"/{ENGINES}/{hashlib.sha256(file.read_bytes()).hexdigest()}"]
            ).status
            == 0
        )

    def files_folder(self, folder: Path) -> str:
        """A folder on the target for files that belong into `folder`."""
        if folder not in self._folders:
            place = f"{self._here.folder}/{_new_name('files')}"
            self._checked(self._connection.run(MAKE, [place]))
            self._folders[folder] = place
        return self._folders[folder]

    def use_files_folder(self, folder: Path, place: str) -> None:
        """As `files_folder` has answered an earlier process."""
        self._folders[folder] = f"{self._here.folder}/{place}"

    def fetch(self, folder: Path, most_bytes: int = MOST_FETCHED) -> None:
        """Bring what programs wrote into `files_folder(folder)` here.

        Raises MeasureError, also if that has more than `most_bytes`.
        """
        place = self._folders.get(folder)
        if place is None:
            return
        names = self.read([place]).get(place, {}).get("directory", [])
        if len(names) > MOST_FILES:
            raise MeasureError(
                f"{self.name}: the target has {len(names)} files to fetch, more than any measurement makes"
            )
        left = most_bytes
        for name in names:
            if not FILE_NAME.fullmatch(name) or (folder / name).exists():
                raise MeasureError(
                    f"{self.name}: the target names a file '{name[:100]}', which it should not have made"
                )
            left -= self._fetch_file(f"{place}/{name}", folder / name, left)
        self._connection.run(REMOVE, [place])
        del self._folders[folder]

    def _fetch_file(self, there: str, here: Path, most_bytes: int) -> int:
        """Bring one file; gives its size.

        Raises MeasureError if it has more than `most_bytes`, ConnectionBroken where it does not come.
        """
        size = 0
        channel = self._connection.channel(GIVE, [there])
        try:
            with here.open("xb") as file:
                if channel.skip_to_mark():
                    while piece := channel.piece(PATIENCE_S):
                        size += len(piece)
                        if size > most_bytes:
                            raise MeasureError(
                                f"{self.name}: {here.name} is larger than everything measured: it is not "
                                f"fetched"
                            )
                        file.write(piece)
        except TimeoutError:
            channel.kill()
            here.unlink(missing_ok=True)
            raise channel.silent(PATIENCE_S) from None
        except BaseException:
            channel.kill()
            here.unlink(missing_ok=True)
            raise
        status, stderr = channel.finish()
        if status is None:
            raise ConnectionBroken(f"{self.name}: the connection broke while {here.name} was fetched")
        if status:
            raise MeasureError(f"{self.name}: {here.name} cannot be fetched: {stderr.strip()[:200]}")
        return size

    def _checked(self, answer: Answer) -> None:
        if answer.status:
            raise MeasureError(
                f"{self.name}: "
                f"{answer.stderr.strip()[:200] or f'a command ended with status {answer.status}'}"
            )

    def end_others(self, kept: Sequence[str]) -> None:
        """End what an earlier process started in this session, except the programs in the folders `kept`."""
        folder = self._here.folder
        names = self.read([folder]).get(folder, {}).get("directory", [])
        places = [f"{folder}/{name}" for name in names if str(name).startswith(PROGRAM) and name not in kept]
        statuses: Mapping[str, dict[str, Any]] = (
            self.read([f"{place}/status" for place in places]) if places else {}
        )
        pids = [
            match[1]
            for file in statuses.values()
            if (
                match := re.match(
                    r'\{"type":"guard","event":"started","guard":([0-9]{1,10}),', str(file.get("text"))
                )
            )
        ]
        # A number may be somebody else's by now: a guard of ours is known by the path of its engine, which
        # holds our random folder.
        lines: Mapping[str, dict[str, Any]] = (
            self.read([f"/proc/{pid}/cmdline" for pid in pids]) if pids else {}
        )
        ours = [
            pid
            for pid in pids
            if str(lines.get(f"/proc/{pid}/cmdline", {}).get("text", "")).startswith(
                f"{self._here.engine}\0guard\0"
            )
        ]
        if ours:
            self._connection.run('kill "$@"', ours)

    def let_go(self) -> None:
        """Leave everything on the target: it goes on until its lease ends or somebody picks it up."""
        for program in [*self._running, *([self._guard] if self._guard is not None else [])]:
            program.let_go()
        self._running.clear()
        self._guard = None
        self._keeper.close()
        self._connection.close()

    def close(self) -> None:
        """End what still runs, put settings back, give the machine free, remove the folder."""
        for program in self._running:
            program.stop()
        if self._guard is not None:
            # At its end the target removes the folder. If it cannot be told, the end of its lease tells
            # it.
            with contextlib.suppress(MeasureError):
                if self._guard.followed():
                    self._guard.say("stop")
            self._guard.wait(LEAVE_S)
        self.let_go()

    def _remove(self) -> None:
        with contextlib.suppress(MeasureError):
            self._connection.run(REMOVE, [self._here.folder])


def _lives(guard: SshGuarded) -> bool:
    """Whether the session that was attached to still holds its target: what it said so far has no end."""
    for text in guard.lines(SESSION_S):
        if b'"event":"ended"' in text:
            guard.let_go()
            return False
        if b'"event":"started"' in text:
            return guard.followed()
    return False


def _new_name(kind: str) -> str:
    """Of a folder in the session's."""
    return f"{kind}-{secrets.token_hex(4)}"
