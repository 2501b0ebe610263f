# SPDX-License-Identifier: MIT
"""Runs a user's program on a target over SSH. The program ends with the connection."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from rtgauge.errors import MeasureError
from rtgauge.target.open_target import where_now
from rtgauge.target.ssh_connection import PATIENCE_S, Channel, SshConnection
from rtgauge.target.ssh_errors import explain_ssh

START = """
sh -c 'echo "$$"; exec "$@" 2>&1' sh "$@" </dev/null &
program=$!
cat >/dev/null
kill "$program" 2>/dev/null
(
	sleep 5
	kill -9 "$program"
) >/dev/null 2>&1 &
wait "$program"
kill "$!" 2>/dev/null
"""
"""Prints the program's process id, then the program's output. Ends the program when standard input ends,
which happens when the connection is closed or lost.
"""
HAS_BEGUN = """
found=2 threads=$2
for stat in "/proc/$1/task"/*/stat; do
	read -r line 2>/dev/null <"$stat" || continue
	name=${line#*(} name=${name%)*}
	set -- ${line##*) }
	[ "$1" = Z ] || found=1
	if [ -n "$threads" ]; then
		case ,$threads, in *,"$name",*) exit 0 ;; esac
	else
		case $1${39} in Z* | X*) ;; *1 | *2 | *6) exit 0 ;; esac
	fi
done
exit "$found"
"""
"""Exit status 0: the process has one of the named threads or, if no thread is named, one with SCHED_FIFO,
SCHED_RR or SCHED_DEADLINE. 1: not yet. 2: the process has ended.
"""
GONE = 2
LAST_S = 10.0
LOOK_S = 0.2
MOST_LINE = 65_536


def _copy(channel: Channel) -> None:
    while line := channel.line(MOST_LINE):
        sys.stderr.write(line.decode(errors="replace"))


@contextmanager
def program_on(
    target: str, command: Sequence[str], settle_s: float, threads: str | None = None
) -> Generator[int]:
    """Start a program on a target over SSH, and end it when the context ends. Yield its process id when it
    has one of `threads` (names, separated by commas; None: any real-time thread), or after `settle_s`.

    Its output goes to standard error. Raises InputError if `target` does not name a target, MeasureError if
    the program cannot be started or ends immediately.
    """
    connection = SshConnection(address := where_now(target))
    try:
        channel = connection.channel(START, command)
        try:
            number = channel.line(MOST_LINE, PATIENCE_S).strip() if channel.skip_to_mark() else b""
            if not number.isdigit():
                raise explain_ssh(channel.finish().stderr, address)
            threading.Thread(target=_copy, args=(channel,), name="output", daemon=True).start()
            end_s = time.monotonic() + settle_s
            while (
                status := connection.run(HAS_BEGUN, [number.decode(), threads or ""]).status
            ) == 1 and time.monotonic() < end_s:
                time.sleep(LOOK_S)
            if status == GONE:
                raise MeasureError(f"{command[0]} ended at once on {target}, so there is nothing to watch")
            yield int(number)
        except TimeoutError:
            raise channel.silent(PATIENCE_S) from None
        finally:
            if channel.process.stdin is not None:
                channel.process.stdin.close()
            try:
                channel.process.wait(LAST_S)
            except subprocess.TimeoutExpired:  # a child of the program still runs, and holds its output
                channel.process.kill()
            channel.finish()
    finally:
        connection.close()
