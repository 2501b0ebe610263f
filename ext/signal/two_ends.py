# SPDX-License-Identifier: MIT
"""Measures a signal probe with master and slave on two machines. Each has its own clock. Times from one clock
are never subtracted from times of the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rtgauge.errors import MeasureError, RtgaugeError
from rtgauge.record.model import LeftOut, PeerReport, StepKey
from rtgauge.record.stream import StreamResult
from rtgauge.record.windows import Windows
from rtgauge.runner.context import StepContext, StepInProgress, step_files
from rtgauge.runner.engine import STREAM, EngineStream, arm_and_stop, follow
from rtgauge.runner.put_together import EngineMeasurement
from rtgauge.target.target_protocol import Guarded, Target
from rtgauge_ext.signal.background_engine import BackgroundEngine
from rtgauge_ext.signal.clock_offset import ClockOffset, clock_offset
from rtgauge_ext.signal.parameters import Role, other_role, signal_step
from rtgauge_ext.signal.signal_marks import SignalMarkKind

SLAVE_STREAM = "stream-slave.ndjson"
arms = True
goes_on_alone = False


@dataclass(frozen=True)
class RoleEnd:
    """One role's target, and the arguments of its engine."""

    target: Target
    arguments: list[str]
    group: str | None

    def start(self) -> Guarded:
        """Start this role's engine."""
        return self.target.engine(*self.arguments, group=self.group)


def _target_of(role: Role, context: StepContext) -> Target:
    """Return the target with this role."""
    peer = context.key.peer
    return context.on.run.targets[peer.target] if peer is not None and peer.role == role else context.target


def _ends(context: StepContext, samples_dir: str | None) -> dict[Role, RoleEnd]:
    """Return both ends of a step with a peer, the slave first, because it must start first.

    `samples_dir`: the folder for raw samples on the master's target.
    """
    key = context.key
    probe, parameters = signal_step(key)
    arguments = probe.both_ends(parameters, samples_dir)
    both: dict[Role, RoleEnd] = {}
    for role in ("slave", "master"):
        target = _target_of(role, context)
        both[role] = RoleEnd(target, arguments[role], context.group if target is context.target else None)
    return both


class Slave(BackgroundEngine):
    """The slave's engine. A thread reads its stream; the master's is read in the foreground."""

    def __init__(self, end: RoleEnd, log: Path) -> None:
        super().__init__(end.start(), end.target, "slave", EngineStream(log, "windows-slave"))


def why_not(key: StepKey, target: Target) -> LeftOut | None:  # noqa: ARG001 - of every way to measure
    """Return None: the engine comes with rtgauge."""
    return None


def try_arm(context: StepContext) -> None:
    """Arm and stop each end. Raises InputError or MeasureError that names the refusing end."""
    for role, end in _ends(context, None).items():
        try:
            arm_and_stop(end.start(), end.target, context.key.probe)
        except RtgaugeError as refused:
            refused.on = end.target.name
            raise refused.reword(f"the {role} on {end.target.name}: {refused}") from None


def measure(step: StepInProgress) -> EngineMeasurement:
    """Measure with one engine on each machine. The load begins when both are armed.

    Raises InputError or MeasureError if either end refuses. If the slave dies, the step ends and keeps the
    results up to then.
    """
    key, context = step.key, step.context
    files_on = _target_of("master", context)
    both = _ends(context, step_files(key, files_on, step.folder))
    peer = _target_of(_peer_role(key), context)
    offset = clock_offset(context.target.monotonic_ns, peer.monotonic_ns)
    slave = Slave(both["slave"], step.folder / SLAVE_STREAM)
    try:
        slave.wait_armed(context.interrupt)
        master = both["master"].start()

        def both_begin(stream: EngineStream) -> None:
            step.begin()
            # before either engine sends a window
            stream.table.place(0, _added_ns("master", key, offset))
            slave.stream.table.place(_behind(stream), _added_ns("slave", key, offset))
            slave.program.send("go")
            slave.when_it_dies(lambda: master.send("stop"))

        stream = follow(master, step, step.folder / STREAM, begin=both_begin)
        died = slave.died
        slave.end()
    except BaseException:
        slave.program.stop()
        raise
    if stream.result.error is not None and stream.result.error.code == "no-answer":
        raise MeasureError(_why_no_answer(context, slave, died=died))
    stream.check(both["master"].target)
    result, windows, report = _merge(key, stream, slave.stream, offset)
    if died:
        detail = f"the slave on {both['slave'].target.name} ended too early ({slave.why()})"
        result.marks.append(SignalMarkKind.SLAVE_DIED.mark(detail))
        if result.end is not None:
            result.end = result.end.model_copy(update={"reason": "slave-died"})
    return EngineMeasurement(result, windows, (master, slave.program), files_on, report)


def _peer_role(key: StepKey) -> Role:
    return other_role(signal_step(key).parameters.role)


def _why_no_answer(context: StepContext, slave: Slave, *, died: bool) -> str:
    key = context.key
    where = _target_of("slave", context).name
    if died:
        return f"the slave on {where} ended before it had answered ({slave.why()})"
    parameters = signal_step(key).parameters
    own, peers = parameters.path, parameters.peer_path or parameters.path
    path = own if own == peers else f"{own} (on the peer: {peers})"
    answers = sum(
        int(line.values.get("answers") or 0) for line in slave.stream.result.results if line.name == "signal"
    )
    if answers:
        return (
            f"the slave on {where} answered {answers} of the stimuli over {path}, but no answer came back "
            f"to the master; check the wire or the firewall between them"
        )
    return (
        f"the stimuli did not reach the slave on {where} over {path}; check its address or line, and that "
        "nothing blocks the way between the two machines"
    )


def _added_ns(role: Role, key: StepKey, offset: ClockOffset) -> int:
    """Return the offset from this end's clock to the target's clock (ns)."""
    return offset.ns if role == _peer_role(key) else 0


def _behind(master: EngineStream) -> int:
    """Return the number for the slave's first series."""
    return 1 + max((line.series for line in master.result.series), default=-1)


def _merge(
    key: StepKey, master: EngineStream, slave: EngineStream, offset: ClockOffset
) -> tuple[StreamResult, Windows, PeerReport]:
    """Combine both results, with the peer's times converted to the target's clock."""
    peer_role = _peer_role(key)
    after = _behind(master)
    windows = [master.table.windows(slave.table), slave.table.windows(master.table)]
    own_end, peer_end = (slave, master) if peer_role == "master" else (master, slave)
    parts: list[StreamResult] = []
    ends_in_order: tuple[tuple[EngineStream, int, Role], ...] = (
        (master, 0, "master"),
        (slave, after, "slave"),
    )
    for stream, first, role in ends_in_order:
        machine = key.targets["self" if stream is own_end else peer_role]
        on_peer = "" if stream is own_end else f"on {machine}: "
        added_ns = _added_ns(role, key, offset)
        parts.append(stream.result.moved(first, {"machine": machine}, added_ns=added_ns, mark_prefix=on_peer))
    result, of_slave = parts
    result.append(of_slave)
    result.hello, result.end = own_end.result.hello, master.result.end
    hello = peer_end.result.hello
    report = PeerReport(
        target=key.targets[peer_role],
        role=peer_role,
        parameters={} if hello is None else hello.parameters,
        cpus=[] if hello is None else hello.cpus,
        clock={} if hello is None else hello.clock,
        series=[line.series + (after if peer_end is slave else 0) for line in peer_end.result.series],
        clock_offset_ns=offset.ns,
        clock_uncertainty_ns=offset.uncertainty_ns,
    )
    return result, Windows.together(windows), report
