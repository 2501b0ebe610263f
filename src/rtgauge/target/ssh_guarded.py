# SPDX-License-Identifier: MIT
"""Follows a program under a guard on a target. The program outlives the connection."""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
import threading
import time
from typing import TYPE_CHECKING, BinaryIO

from rtgauge.errors import MeasureError
from rtgauge.input_file import json_object
from rtgauge.target.guard import LOOK_EVERY_S
from rtgauge.target.log_bound import bound_log
from rtgauge.target.ssh_connection import PATIENCE_S
from rtgauge.target.ssh_errors import ConnectionBroken, explain_ssh

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rtgauge.target.guard import GuardWatch, LeaseKeeper
    from rtgauge.target.ssh_connection import Channel, SshConnection
    from rtgauge.target.target_protocol import ProgramPlace

ATTACHED = b'{"type":"attach","event":"attached"}\n'
GONE = 13
"""The exit status of ATTACH if there is no program in the folder."""
FULL = "No space left on device"
END_PATIENCE_S = 10.0
PROBE_AFTER_S = 60.0
"""After this silence (s), rtgauge asks if the target answers; then after twice this, and so on."""
RECONNECT_S = 30.0
MOST_LINE = 4 << 20
"""The most bytes in a line of output. The engine's lines have less than a tenth of this."""
RETRY_S = 1.0

# The connection's end cannot reach the guard, which reads and writes files and has its own session
# (--detach). `attach` connects these files with the connection. A write tests for free space, so that rtgauge
# itself names the error; shells word it differently (dash: an I/O error).
FOLLOW = f"""
"$engine" attach --folder "$folder" --pid "$pid" --from "$from"
status=$?
cat "$folder/errors" 2>/dev/null >&2
[ "$status" = 0 ] || [ ! -d "$folder" ] || {{ echo full >"$folder/room"; }} 2>/dev/null || echo "{FULL}" >&2
exit "$status"
"""
PREPARE = """
engine=$1 folder=$2 merge=$3 from=0
shift 3
umask 077
mkdir "$folder" && mkfifo "$folder/input" && : >"$folder/output" && : >"$folder/errors" && \\
  : >"$folder/status" || exit 1
cd / || exit 1
"""
LAUNCH = (
    PREPARE
    + """
if [ "$merge" = merge ]; then
	"$@" <>"$folder/input" >>"$folder/output" 2>&1 3>>"$folder/status" &
else
	"$@" <>"$folder/input" >>"$folder/output" 2>>"$folder/errors" 3>>"$folder/status" &
fi
pid=$!
echo "$pid" >"$folder/pid"
echo "$pid"
"""
    + FOLLOW
)
LAUNCH_SESSION = (
    PREPARE
    + """
home=$1
shift
(
	"$@" <>"$folder/input" >>"$folder/output" 2>>"$folder/errors" 3>>"$folder/status"
	tries=0
	until [ -e "$folder/attached" ] || [ "$tries" = 10 ]; do
		sleep 1
		tries=$((tries + 1))
	done
	rm -rf "$home"
) </dev/null >/dev/null 2>&1 &
pid=$!
echo "$pid" >"$folder/pid"
echo "$pid"
"""
    + FOLLOW
)
"""Starts the guard of the whole session, and removes the folder `home` no matter how the guard ends.

If the guard ends immediately because the target is held, its folder stays until `attach` has opened its
files, or for 10 s if the connection was lost first.
"""
ATTACH = (
    f"""
engine=$1 folder=$2 from=$3
pid=$(cat "$folder/pid" 2>/dev/null)
case $pid in '' | *[!0-9]*) exit {GONE} ;; esac
echo "$pid"
"""
    + FOLLOW
)


class SshGuarded:
    """A program under a guard on a target.

    For `RECONNECT_S`, rtgauge tries to renew a broken connection, and loses no output.
    """

    def __init__(
        self,
        connection: SshConnection,
        engine: str,
        channel: Channel,
        folder: str,
        *,
        keeper: LeaseKeeper,
        log: BinaryIO | None,
    ) -> None:
        """Follow the program that `channel` started or attached to. Raises MeasureError if that failed."""
        self._connection = connection
        self._engine = engine
        self._keeper = keeper
        self._log = log
        self._status: int | None = None
        self._error: MeasureError | None = None
        self._taken = 0
        self.reconnections = 0
        self._ending = False
        self.watch: GuardWatch | None = None
        self._channel = channel
        self._folder = folder
        self._pid = self._begin(channel)
        self._ended = threading.Event()
        self._copier: threading.Thread | None = None
        if log is not None:
            self._copier = threading.Thread(target=self._copy, args=(log,), name="log", daemon=True)
            self._copier.start()

    @property
    def pid(self) -> int:
        """Process id of the guard on the target."""
        return self._pid

    @property
    def kept(self) -> ProgramPlace | None:
        """The program's place, for `attach` in another process."""
        return {"name": self._folder.rpartition("/")[2]}

    @property
    def over(self) -> bool:
        """Whether the program has ended, or can no longer be reached."""
        return self._status is not None or self._error is not None

    def _begin(self, channel: Channel) -> int:
        """Read a channel's first output; return the guard's process id.

        Raises MeasureError if the program cannot run, ConnectionBroken if another try may help.
        """
        name = self._connection.address.name
        assert channel.process.stdin is not None  # noqa: S101 - Popen was asked for a pipe
        try:
            first = channel.line(MOST_LINE, PATIENCE_S).strip()[:10] if channel.skip_to_mark() else b""
            answer = channel.line(MOST_LINE, PATIENCE_S) if first.isdigit() else b""
        except TimeoutError:
            channel.kill()
            raise channel.silent(PATIENCE_S) from None
        if first.isdigit() and answer == ATTACHED:
            self._keeper.add(channel.process.stdin.fileno())
            return int(first)
        status, stderr = channel.finish()
        if status is None:
            raise explain_ssh(stderr, self._connection.address)
        if (json_object(answer) or {}).get("code") == "attached":
            raise ConnectionBroken(
                "another rtgauge already follows the program there; check whether that run is still in "
                "progress",
                on=name,
            )
        if status == GONE:
            raise MeasureError(
                "the data measured there is lost, because the machine was rebooted meanwhile or its "
                "temporary folder was emptied",
                on=name,
            )
        lines = [line for line in stderr.splitlines() if line.strip()]
        why = lines[-1][:200] if lines else f"status {status}"
        raise MeasureError(
            f"the target cannot start a program ({why}); check whether its disk is full", on=name
        )

    def _over(self) -> bool:
        """Handle the end of the channel's output. Return True if the program has ended, False if only the
        connection ended and was renewed.

        Raises MeasureError if neither is the case.
        """
        channel = self._channel
        self._release(channel)
        _, stderr = channel.finish()
        # Without this line, the program has not ended: the connection has, or `attach` after a long silence.
        ended = re.search(
            r'^\{"type":"attach","event":"ended","status":([0-9]{1,3})\}\n', stderr, re.MULTILINE
        )
        if ended is not None:
            self._status = int(ended[1])
            stderr = stderr.replace(ended[0], "", 1)
            if FULL in stderr:
                # The program's last output was lost, so the output only looks complete.
                self._error = MeasureError(
                    f"the target's disk is full, so {self._folder} cannot be written; free space there",
                    on=self._connection.address.name,
                )
                raise self._error
            if stderr.strip():
                sys.stderr.write(stderr)
            return True
        self._error = explain_ssh(stderr, self._connection.address)
        if self._ending:
            raise self._error
        self._attach_again()
        return False

    def _attach_again(self) -> None:
        deadline = time.monotonic() + RECONNECT_S
        while True:
            try:
                channel = self._connection.channel(ATTACH, [self._engine, self._folder, str(self._taken)])
                self._begin(channel)
            except ConnectionBroken as error:
                self._error = error
                if self._ending or time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_S)
                continue
            self._channel, self._error = channel, None
            self.reconnections += 1
            return

    def _release(self, channel: Channel) -> None:
        if channel.process.stdin is not None and not channel.process.stdin.closed:
            self._keeper.remove(channel.process.stdin.fileno())

    def _watched_line(self, timeout_s: float | None) -> bytes:
        """Read a line as `Channel.line` does, while watching the run's guard."""
        if self.watch is None:
            return self._channel.line(MOST_LINE, timeout_s)
        deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while True:
            self.watch.look()
            try:
                return self._channel.line(MOST_LINE, min(LOOK_EVERY_S, max(0.0, deadline - time.monotonic())))
            except TimeoutError:
                if time.monotonic() >= deadline:
                    raise

    def _line(self, silence_s: float | None) -> bytes:
        """Return the next line of this connection.

        During a long silence it asks whether the target answers, but seldom, because each question is work
        for the target.
        """
        wait_s = waited_s = 0.0 if silence_s is None else min(PROBE_AFTER_S, silence_s)
        while True:
            try:
                return self._watched_line(None if silence_s is None else wait_s)
            except TimeoutError:
                name = self._connection.address.name
                if silence_s is not None and waited_s >= silence_s:
                    message = f"the program on {name} sent nothing for {waited_s:.0f} s, so rtgauge gave up"
                    raise ConnectionBroken.to(name, message) from None
                self._connection.run("exit 0")
                wait_s = waited_s if silence_s is None else min(waited_s, silence_s - waited_s)
                waited_s += wait_s

    def _pieces(self, silence_s: float | None) -> Iterator[bytes]:
        """Yield output line by line, across broken connections. The last line may be incomplete."""
        while self._status is None:
            rest = b""
            while line := self._line(silence_s):
                if not line.endswith(b"\n"):
                    if len(line) == MOST_LINE:
                        raise MeasureError(
                            f"the target sent a line of more than {MOST_LINE >> 20} MiB",
                            on=self._connection.address.name,
                        )
                    rest = line
                    break
                self._taken += len(line)
                yield line
            if self._over() and rest:
                self._taken += len(rest)
                yield rest

    def lines(self, silence_s: float | None = None) -> Iterator[bytes]:
        """Yield standard output, line by line, until it ends.

        Raises ConnectionBroken if the target is out of reach for `RECONNECT_S`, or silent for `silence_s`.
        """
        try:
            yield from self._pieces(silence_s)
        except MeasureError as error:
            self._error = error
            self._ended.set()
            raise
        self._ended.set()

    def followed(self) -> bool:
        """Return whether a program that prints nothing still runs; renew a broken connection.

        Raises ConnectionBroken if that fails.
        """
        if self._status is None and self._channel.process.poll() is not None and self._over():
            self._ended.set()
        return self._status is None

    def _copy(self, log: BinaryIO) -> None:
        with contextlib.suppress(MeasureError, OSError, ValueError):
            for line in self.lines():
                log.write(line)
                log.flush()
                bound_log(log)
        self._ended.set()

    def send(self, word: str) -> None:
        """Send one line; do nothing if the program has ended. A signal handler may call this."""
        stdin = self._channel.process.stdin
        if stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                os.write(stdin.fileno(), word.encode() + b"\n")

    def poll(self) -> int | None:
        """Return the exit status; None while the program runs. Raises ConnectionBroken if the target cannot
        be reached.
        """
        if self._status is None and self._error is not None and self._ended.is_set():
            raise self._error
        return self._status

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for the program to end. Return its exit status; None after `timeout_s`, or without contact."""
        if self._copier is None and not self.over and not self._ended.is_set():
            # Nobody reads the output, so discard it.
            self._copier = threading.Thread(target=self._drain, name="drain", daemon=True)
            self._copier.start()
        self._ended.wait(timeout_s)
        return self._status

    def _drain(self) -> None:
        with contextlib.suppress(MeasureError):
            for _ in self.lines():
                pass

    def stop(self, grace_s: float = 2.0) -> int | None:
        """End the program with its children, and return its exit status. Return None if contact is lost, or
        if this takes longer than `grace_s` + `END_PATIENCE_S`; the program then ends with its lease.
        """
        self._ending = True
        if not self.over:
            self.send("end")
        if self.wait(grace_s + END_PATIENCE_S) is None:
            self.let_go()
        return self._status

    def let_go(self) -> None:
        """Stop following the program, which continues on the target."""
        self._ending = True
        self._release(self._channel)
        with contextlib.suppress(OSError):
            self._channel.process.kill()
        if self._copier is not None:
            self._copier.join(END_PATIENCE_S)
        if self._copier is None or not self._copier.is_alive():
            self._channel.finish()


def launch(
    connection: SshConnection,
    engine: str,
    folder: str,
    command: Sequence[str],
    *,
    keeper: LeaseKeeper,
    log: BinaryIO | None,
    home: str | None = None,
) -> SshGuarded:
    """Start `command` (the engine's guard with its options) in `folder`, a new folder on the target.

    `log`: the file for its output and errors; None: `lines` yields its output. `home`: the folder to remove
    when the command ends. Raises MeasureError if it cannot be started.
    """
    body, words = (LAUNCH, list(command)) if home is None else (LAUNCH_SESSION, [home, *command])
    channel = connection.channel(body, [engine, folder, "merge" if log is not None else "apart", *words])
    return SshGuarded(connection, engine, channel, folder, keeper=keeper, log=log)


def attach(
    connection: SshConnection, engine: str, folder: str, *, keeper: LeaseKeeper, log: BinaryIO | None
) -> SshGuarded:
    """Follow the program in `folder`, which an earlier connection started, from the beginning of its output.

    `log`: as in `launch`. Raises MeasureError if the program is gone.
    """
    channel = connection.channel(ATTACH, [engine, folder, "0"])
    return SshGuarded(connection, engine, channel, folder, keeper=keeper, log=log)
