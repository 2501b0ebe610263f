# SPDX-License-Identifier: MIT
"""A run before it has a record, and what is kept of it where it gets no further."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from rtgauge.errors import MeasureError, RtgaugeError
from rtgauge.lab.boot_guest import BootError
from rtgauge.record.model import Mark, Severity
from rtgauge.record.writer import RecordWriter
from rtgauge.runner.planned_steps import how_to_go_on
from rtgauge.target.address import LAB
from rtgauge.target.factory import console, open_target
from rtgauge.target.ssh_errors import ConnectionBroken

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path
    from types import TracebackType

    from rtgauge.record.model import Run
    from rtgauge.target.target import Target

NOT_UP = "guest-not-up"


@dataclass
class Beginning:
    """Holds the targets of a run, and begins its record in `out`, or in the folder `into` that was begun before.

    A guest of the lab that does not come up, or does not answer, ends the run before there is anything to write. Its console is kept all the
    same, in a record that can be gone on with; `unmeasured` makes its run.json, None: nothing of this run is kept.
    """

    out: Path
    name: str
    into: Path | None = None
    unmeasured: Callable[[str], Run] | None = None
    stack: ExitStack = field(default_factory=ExitStack)
    _begun: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._begun or not isinstance(error, BootError | ConnectionBroken):
            self.stack.__exit__(kind, error, trace)
            return
        # Where the connection to one breaks, what the others hold is left to be gone on with. Here there is nothing yet that could be.
        kept = self._keep(error)
        with suppress(RtgaugeError):  # a guest that does not come up cannot be left as it was found either
            self.stack.close()
        raise kept from None

    def open(self, target: str, run_id: str, label: str, lease_ns: int) -> Target:
        """Open and hold a target until the end. Raises InputError, MeasureError."""
        return self.stack.enter_context(open_target(target, run_id, label, lease_ns=lease_ns))

    def record(self, host: str) -> RecordWriter:
        """The record, without its run.json where it is a new one. Raises InputError, MeasureError."""
        writer = self._writer(host)
        self._begun = True
        return writer

    def _writer(self, host: str) -> RecordWriter:
        return RecordWriter.open_partial(self.into) if self.into is not None else RecordWriter.create(self.out, host=host, name=self.name)

    def _keep(self, error: BootError | ConnectionBroken) -> MeasureError:
        """What the run says at its end: with the guest's console in a record, where it is a guest that ended it."""
        name = LAB + error.guest if isinstance(error, BootError) else error.target
        said = error.console if isinstance(error, BootError) else console(name) if name is not None else None
        if name is None or said is None or self.unmeasured is None:
            return MeasureError(str(error))
        try:
            writer = self._writer(name.removeprefix(LAB))
            place = writer.write_console(name, said)
            mark = Mark(name=NOT_UP, severity=Severity.NOTE, detail=_told(error, place.relative_to(writer.path)))
            writer.write_run(self.unmeasured(writer.id).model_copy(update={"marks": [mark]}))
            writer.close_partial()
        except RtgaugeError:
            return MeasureError(str(error))  # what came first is what the user has to know
        return MeasureError(f"{_told(error, place)}{how_to_go_on(writer.path)}")


def _told(error: BootError | ConnectionBroken, console: Path) -> str:
    return error.with_console(console) if isinstance(error, BootError) else f"{error}; its console is in {console}"


@contextmanager
def console_into(writer: RecordWriter) -> Generator[None]:
    """While a record's targets are opened again: the console of a guest that does not come up goes into the record."""
    try:
        yield
    except BootError as error:
        if error.console is None:
            raise
        place = writer.write_console(LAB + error.guest, error.console)
        raise MeasureError(f"{error.with_console(place)}{how_to_go_on(writer.path)}") from None
