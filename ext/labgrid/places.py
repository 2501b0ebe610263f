# SPDX-License-Identifier: MIT
"""Acquires boards from a labgrid coordinator. A place is held as long as this process lives, and released no
matter how the process ends.

A process acquires places under its own user name, so that it never releases another's place. Before it
acquires anything, it writes that name to a file (the journal) and starts a guard. The guard survives a kill
-9 of the process. If the guard was killed too, the next process that wants a place releases the abandoned
ones. All requests go through `labgrid-client` (labgrid's manual, "labgrid-client").
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import fcntl
import functools
import getpass
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

from rtgauge.errors import InputError, LockedError, MeasureError
from rtgauge.program_run import run_program
from rtgauge.record.own_folder import OwnFolder
from rtgauge.target.address import HOST, USER
from rtgauge.user_cache import private_folder
from rtgauge_ext.labgrid import serial_console
from rtgauge_ext.labgrid.serial_console import BoardConsole

CLIENT = "labgrid-client"
CLIENT_S = 60.0
"""Time limit (s) for one command of the client, which normally answers within a second."""
PAUSE_S = 1.0
CONNECT_S = 5.0
BOOT_S = 300.0
"""Time limit (s) from power-on until a board answers."""
RELEASE_S = 30.0
"""How long (s) an ending process waits for its guard."""
GUARD_S = 600.0
"""How long (s) a guard tries to reach a coordinator that does not answer."""
NOT_OURS = {"LG_ENV", "LG_PLACE", "LG_STATE", "LG_INITIAL_STATE", "LG_TOKEN"}
"""Environment variables of the user's own work with labgrid, which `labgrid-client` does not get."""
LOGIN = re.compile(rf"(?:{USER}@)?{HOST}|[0-9A-Fa-f:.]{{2,45}}", re.ASCII)
TOKEN = re.compile(r"LG_TOKEN=([A-Z0-9]+)")
RESOURCE = re.compile(r"^Acquired resource .*:\n(?P<values>(?:  .*\n?)+)", re.MULTILINE)
RESERVATION = re.compile(
    r"Reservation '(?P<token>[A-Z0-9]+)':\s+owner: (?P<owner>\S+)\s+token: \S+\s+state: (?P<state>\w+)"
)

HELD = "already acquired"
"""Part of the client's message if another user holds a place."""


class HeldError(MeasureError):
    """Another user holds the place."""


@dataclass(frozen=True)
class Service:
    """The address of a board's SSH server, and whether labgrid can switch the board's power.

    `proxy`: the ssh host through which the board is reached. `console`: the console of a board without a
    network. `options`: ssh options for logging in over the console.
    """

    host: str
    user: str | None
    port: int | None
    has_power: bool
    proxy: str | None = None
    console: BoardConsole | None = None
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Holder:
    """A holder of places at a coordinator: `host`/`user`, a name that nobody else uses."""

    host: str
    user: str
    coordinator: str | None
    folder: str = ""
    """The holder's private folder, with the files of console logins."""

    @classmethod
    def new(cls) -> Holder:
        """Return a holder that was never used before."""
        host = os.environ.get("LG_HOSTNAME", socket.gethostname())
        return cls(
            host,
            f"{getpass.getuser()}.rtgauge-{secrets.token_hex(8)}",
            os.environ.get("LG_COORDINATOR"),
            tempfile.mkdtemp(prefix="rtg-line-"),
        )

    @property
    def identity(self) -> str:
        """The name by which the coordinator knows the holder."""
        return f"{self.host}/{self.user}"

    def client(self, *words: str, timeout_s: float = CLIENT_S) -> str:
        """Run `labgrid-client` and return its output. Raises InputError if it is missing, MeasureError if it
        fails.
        """
        program = shutil.which(CLIENT) or shutil.which(CLIENT, path=Path(sys.executable).parent)
        if program is None:
            raise InputError("labgrid-client is not installed: pipx install labgrid")
        own = {"LG_HOSTNAME": self.host, "LG_USERNAME": self.user}
        if self.coordinator is not None:
            own["LG_COORDINATOR"] = self.coordinator
        kept = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
        try:
            completed = run_program([program, *words], environment=kept | own, timeout_s=timeout_s)
        except subprocess.TimeoutExpired:
            raise MeasureError(
                f"labgrid: {CLIENT} {words[0]} did not end within {timeout_s:g} s; check the coordinator"
            ) from None
        if completed.returncode:
            output_lines = [
                line for line in (completed.stderr + completed.stdout).splitlines() if line.strip()
            ]
            reason = (
                output_lines[-1].removeprefix(f"{CLIENT}: ").removeprefix("Error: ")
                if output_lines
                else "it failed"
            )
            raise (HeldError if HELD in reason else MeasureError)(
                f"labgrid: {reason} (coordinator {self.coordinator or 'at the default address'}; "
                "set LG_COORDINATOR=HOST:PORT to use another)"
            )
        return completed.stdout

    def release_all(self) -> None:
        """Wait until this holder's consoles are restored, release its places, and cancel its reservations.

        Raises MeasureError, InputError.
        """
        own = bool(self.folder) and _is_own(Path(self.folder))
        if own:
            serial_console.wait_for_end(Path(self.folder))
        for line in self.client("who").splitlines()[1:]:
            user, host, place, *_ = [*line.split(), "", "", ""]
            if f"{host}/{user}" == self.identity:
                self.client("-p", place, "release-from", self.identity)
        for token in self.reservations():
            self.client("cancel-reservation", token)
        if own:
            shutil.rmtree(self.folder, ignore_errors=True)

    def reservations(self) -> dict[str, str]:
        """Return this holder's reservations as token -> state. Raises MeasureError, InputError."""
        matches = RESERVATION.finditer(self.client("reservations"))
        return {each["token"]: each["state"] for each in matches if each["owner"] == self.identity}


def _is_own(folder: Path) -> bool:
    """Return whether this user made the folder. After a boot, another user may have made one of this name."""
    try:
        OwnFolder.existing(folder).close()
    except OSError:
        return False
    return True


def journal_folder() -> Path:
    """Return the folder of the journals. Each process that holds places has a file there."""
    given = os.environ.get("XDG_STATE_HOME", "")
    return (Path(given) if given.startswith("/") else Path.home() / ".local/state") / "rtgauge" / "labgrid"


class Places:
    """The places that this process holds."""

    def __init__(self) -> None:
        """Release the places of dead processes, and start this process's guard.

        Raises MeasureError, InputError, OSError.
        """
        folder = private_folder(journal_folder())
        release_abandoned(folder)
        self._holder = Holder.new()
        self._holder.client("who")  # fails early if the coordinator does not answer
        self._held: dict[str, Service] = {}
        journal = folder / f"{self._holder.user}.json"
        # The guard inherits the lock. A process that can take the lock knows that process and guard are dead.
        with journal.open("x") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            json.dump(asdict(self._holder), file)
            file.flush()
            os.fsync(file.fileno())
            self._guard = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(journal)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(file.fileno(),),
                start_new_session=True,
            )
        atexit.register(self.close)

    def close(self) -> None:
        """Release everything, for at most RELEASE_S. If that is not enough, the guard continues."""
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._guard.wait(RELEASE_S)

    def get(self, name: str, wait_s: float) -> Service:
        """Acquire a place, and return how to reach its board.

        A board that does not answer is power-cycled, if labgrid can switch its power. `name`: `PLACE`, or
        `TAG=VALUE[,TAG=VALUE]` for any place with these tags. `wait_s`: how long to wait for a place that
        others hold. Raises LockedError if it is held longer, MeasureError, InputError.
        """
        if name not in self._held:
            word = self._reserve(name, wait_s) if "=" in name else self._acquire(name, wait_s)
            self._held[name] = self._ready(name, word)
        return self._held[name]

    def _acquire(self, place: str, wait_s: float) -> str:
        end, was_held = time.monotonic() + wait_s, False
        while True:
            try:
                self._holder.client("-p", place, "acquire")
            except MeasureError as error:
                if not isinstance(error, HeldError) and not was_held:  # otherwise the coordinator is down
                    raise
                was_held = True
                if time.monotonic() >= end:
                    raise LockedError(f"labgrid place {place} is held: {error}") from None
                time.sleep(PAUSE_S)
            else:
                return place

    def _reserve(self, tags: str, wait_s: float) -> str:
        """Wait in the coordinator's queue. Ask again if the coordinator restarted and forgot the request."""
        end = time.monotonic() + wait_s
        while True:
            token, reason = None, "all are in use, or none exists (see labgrid-client places)"
            try:
                made = TOKEN.search(self._holder.client("reserve", "--shell", *tags.split(",")))
                if made is None:
                    raise MeasureError(
                        f"labgrid: {CLIENT} reserve did not print a token; try the command by hand"
                    )
                token = made[1]
                if self._holder.reservations().get(token) == "waiting" and time.monotonic() < end:
                    self._holder.client("wait", token, timeout_s=end - time.monotonic())
                if self._holder.reservations().get(token) == "allocated":
                    self._holder.client("-p", f"+{token}", "acquire")
                    return f"+{token}"
            except MeasureError as error:
                reason = str(error)
            if token is not None:
                with contextlib.suppress(MeasureError):
                    self._holder.client("cancel-reservation", token)
            if time.monotonic() >= end:
                raise LockedError(f"cannot get a labgrid place with the tags {tags}: {reason}")
            time.sleep(PAUSE_S)

    def _ready(self, name: str, word: str) -> Service:
        service = _service(name, self._holder.client("-p", word, "show"))
        if service.console is not None:
            return self._logged_in(name, word, service, service.console)
        if service.has_power and not _answers(service):
            self._holder.client("-p", word, "power", "cycle")
            end = time.monotonic() + BOOT_S
            while not _answers(service):
                if time.monotonic() >= end:
                    raise MeasureError(
                        f"labgrid:{name}: the SSH server on {service.host} did not answer within {BOOT_S:g} "
                        "s of power-on; look at its console (labgrid-client console)"
                    )
                time.sleep(PAUSE_S)
        return service

    def _logged_in(self, name: str, word: str, service: Service, console: BoardConsole) -> Service:
        folder = Path(self._holder.folder, str(len(self._held)))
        folder.mkdir(mode=0o700)
        login = serial_console.Login(folder, console)
        trouble = login.begin()
        if trouble is not None and service.has_power:
            self._holder.client("-p", word, "power", "cycle")
            trouble = login.begin(BOOT_S, serial_console.BOOT_QUIET_S)
        if trouble is not None:
            raise MeasureError(f"labgrid:{name}: {trouble}; look at its console (labgrid-client console)")
        return replace(service, options=tuple(login.options.items()))


def _service(name: str, text: str) -> Service:
    """Parse the output of `labgrid-client show` into the board's SSH server, or else its console.

    Raises InputError if the board has neither, or if the address is invalid.
    """
    resources: dict[str, dict[str, Any]] = {}
    for match in RESOURCE.finditer(text):
        resource = ast.literal_eval(match["values"].strip())
        resources[resource["cls"]] = resource["params"]
    has_power = any(kind.endswith("PowerPort") for kind in resources)
    network, line = resources.get("NetworkService"), resources.get("NetworkSerialPort")
    if network is not None:
        port, user, host = network.get("port"), network.get("username"), str(network["address"])
        service = Service(
            host, str(user) if user else None, int(port) if port else None, has_power, _proxy(network)
        )
    elif line is not None and line.get("port"):
        host = str(line["host"])
        console = BoardConsole(
            host,
            int(line["port"]),
            int(line.get("speed") or 115200),
            str(line.get("protocol") or "rfc2217"),
            _proxy(line),
        )
        service = Service(host, "root", None, has_power, console=console)
    else:
        only = f", only {', '.join(sorted(resources))}" if resources else ""
        raise InputError(
            f"labgrid:{name} has neither a NetworkService nor a NetworkSerialPort{only}; make its exporter "
            "export one of the two"
        )
    for each in (service.host, _proxy(network or line or {})):
        if each is not None and LOGIN.fullmatch(each) is None:
            raise InputError(
                f"labgrid:{name}: its exporter gives {each[:80]!r}, which is not the name of a host"
            )
    return service


def _proxy(params: dict[str, Any]) -> str | None:
    """Return the ssh host through which a resource is reached (labgrid's manual, "Proxy Mechanism")."""
    extra: dict[str, Any] = params.get("extra") or {}
    proxy = extra.get("proxy") if extra.get("proxy_required") else os.environ.get("LG_PROXY")
    return str(proxy) if proxy else None


def _answers(service: Service) -> bool:
    """Return whether an SSH server sends its version. Connecting is not enough: a port forwarder accepts
    connections before the board has booted.
    """
    port = service.port or 22
    try:
        if service.proxy is not None:
            words = ["ssh", "-o", "BatchMode=yes", "-W", f"[{service.host}]:{port}", "--", service.proxy]
            return run_program(words, timeout_s=2 * CONNECT_S).stdout.startswith("SSH-")
        with socket.create_connection((service.host, port), CONNECT_S) as connection:
            return connection.recv(4, socket.MSG_WAITALL) == b"SSH-"
    except (OSError, subprocess.TimeoutExpired):
        return False


def release_abandoned(folder: Path) -> None:
    """Release the places of processes that were killed together with their guards.

    Raises MeasureError, InputError.
    """
    for journal in folder.glob("*.json"):
        with contextlib.suppress(FileNotFoundError), journal.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            with contextlib.suppress(
                ValueError, TypeError
            ):  # killed before it wrote the name, so nothing is held
                Holder(**json.load(file)).release_all()
            journal.unlink(missing_ok=True)


@functools.cache
def _places() -> Places:
    return Places()


def board(name: str, wait_s: float = 0.0) -> Service:
    """Return how to reach a board. Its place is held until this process ends.

    `name`, `wait_s`: as in `Places.get`. Raises LockedError, MeasureError, InputError.
    """
    return _places().get(name, wait_s)


def hold_places(names: Iterable[str], wait_s: float) -> None:
    """Hold several places. All processes take places in the same order, so that no deadlock can occur.

    Raises as `board` does.
    """
    for name in sorted(names):
        board(name, wait_s)


def _guard(journal: Path, ended: IO[bytes]) -> None:
    """Wait until the process has ended, release its places, and remove its journal."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    ended.read()
    holder = Holder(**json.loads(journal.read_bytes()))
    end = time.monotonic() + GUARD_S
    while True:
        try:
            holder.release_all()
        except (MeasureError, InputError):
            if time.monotonic() >= end:
                return  # the journal stays for the next process
            time.sleep(PAUSE_S)
        else:
            journal.unlink(missing_ok=True)
            return


if __name__ == "__main__":
    _guard(Path(sys.argv[1]), sys.stdin.buffer)
