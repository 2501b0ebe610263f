# SPDX-License-Identifier: MIT
"""Starting the engine that a step is measured by, the ordinary one or that of a co-kernel; and one that is
listened to in a thread, while the foreground listens to what measures with it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from rtgauge.errors import MeasureError
from rtgauge.record.model import COKERNELS
from rtgauge.record.stream import Armed
from rtgauge.runner.context import Abandoned, StepContext
from rtgauge.runner.engine_stream import SILENCE_S, EngineStream, as_exception
from rtgauge.runner.interrupt import Interrupt
from rtgauge.system import cobalt
from rtgauge.target.engine_path import cokernel_engine
from rtgauge.target.target import Guarded, Target

LOADING = "error while loading shared libraries: "
"""What the dynamic loader of glibc says before the name of what it misses."""
START_S = 30.0
LOOK_EVERY_S = 0.1
END_S = 10.0
"""How long an engine that was told to stop may take."""


def start_engine(context: StepContext, arguments: Sequence[str]) -> Guarded:
    """Start a probe (its verb and options) on the step's target, under guard.

    Raises MeasureError where there is no engine for what it runs on.
    """
    target, key = context.target, context.key
    if key.rt == "linux":
        return target.engine(*arguments, group=context.group)
    return target.start(
        [target.put(cokernel_engine(target.machine, key.rt)), *arguments], group=context.group
    )


def check_engine_starts(runtime: str, target: Target) -> None:
    """Raises MeasureError where the engine of a co-kernel is missing here, or cannot be loaded on the target:
    it has libraries of the co-kernel.
    """
    engine = target.put(cokernel_engine(target.machine, runtime))
    done = target.run(["sh", "-c", 'exec "$0" version 2>&1', engine], START_S)
    if done.returncode == 0:
        return
    name = COKERNELS[runtime]
    last = (done.stdout.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]
    _, loading, missing = last.partition(LOADING)
    if loading and "error" in target.read([cobalt.VERSION])[cobalt.VERSION]:
        raise MeasureError("this kernel has no Xenomai 3 (Cobalt) core: boot one that has, or leave rt out")
    if loading:
        library = missing.partition(":")[0]
        remedy = (
            "install Xenomai's libraries there, in the folder that they were configured for where "
            "rtgauge was installed (docs/cokernels.md)"
        )
        raise MeasureError(f"the engine for {name} needs {library}, which is not on the target: {remedy}")
    raise MeasureError(f"the engine for {name} does not start on the target: {last}")


class BackgroundEngine:
    """The engine of a role, from its start on; `stream` reads it."""

    def __init__(self, program: Guarded, target: Target, role: str, stream: EngineStream) -> None:
        self.stream = stream
        self.program = program
        self.ended = threading.Event()
        self._target = target
        self._role = role
        self._armed = threading.Event()
        self._failure: Exception | None = None
        self._gone: Callable[[], object] | None = None
        threading.Thread(target=self._listen, name=role, daemon=True).start()

    def _listen(self) -> None:
        try:
            for line in self.stream.lines(self.program):
                if isinstance(line, Armed):
                    self._armed.set()
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            self._failure = error
        self.ended.set()
        if self._gone is not None and self.died:
            self._gone()

    @property
    def died(self) -> bool:
        """A slave ended by itself while it was needed. Over UDP it also ends by the master's word."""
        return self.ended.is_set() and (
            self.stream.result.end is None or self.stream.result.end.reason != "count"
        )

    def why(self) -> str:
        """Why it ended."""
        result = self.stream.result
        if result.error is not None:
            return str(as_exception(result.error, self._target))
        return str(self._failure) if self._failure is not None else "its engine was ended"

    def wait_armed(self, interrupt: Interrupt) -> None:
        """Raises what its engine refuses, Abandoned where the user ends the run."""
        deadline = time.monotonic() + SILENCE_S
        while not self._armed.wait(LOOK_EVERY_S):
            if time.monotonic() > deadline:
                raise MeasureError(
                    f"the {self._role}'s engine was not ready to measure within {SILENCE_S:g} s"
                )
            if interrupt.requested:
                raise Abandoned
            if self.ended.is_set():
                self.check()
                raise MeasureError(f"the {self._role}'s engine ended at once")

    def check(self) -> None:
        """Raises what its engine has refused, or why its stream could not be read."""
        self.stream.check(self._target)
        if self._failure is not None:
            raise self._failure

    def when_it_dies(self, gone: Callable[[], object]) -> None:
        """Call `gone` then; at once, where it has died already."""
        self._gone = gone
        if self.died:
            gone()

    def end(self) -> None:
        """Tell it to stop, and wait for the end of its stream."""
        self.program.say("stop")
        if not self.ended.wait(END_S):
            self.program.stop()
            self.ended.wait(END_S)
