# SPDX-License-Identifier: MIT
"""Divides the time from a frame's sending to its answer by the kernel's events, which show both frames.

The general explanation (rtgauge.explain) knows only that the thread waited. The parts here replace the wait:
send queue, driver, wire and device, packet poll, protocol. They cover it without a gap, so the sum stays the
round trip exactly. The wire and the device end at the interrupt of the network card. Each part has a side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rtgauge.explain.analysis.explanation import (
    DEVICE,
    NOT_SELF,
    SELF,
    Culprit,
    Explanation,
    Kind,
    Part,
)
from rtgauge.explain.analysis.thread_path import IN_INTERRUPT
from rtgauge.explain.trace.contexts import Context, CpuTimeline, timelines
from rtgauge.explain.trace.formats import Symbols
from rtgauge.explain.trace.moment import Event

SENT = "net_dev_start_xmit"
"""The driver gets a packet to send."""
HANDED = frozenset({"netif_rx", "napi_gro_receive_entry", "netif_receive_skb_entry"})
"""The driver gives a received packet to the kernel, before RPS."""
RECEIVE = "NET_RX"
OTHER_FLOWS, TIMER = "behind other flows", "until a timer"
"""How a packet waits. The timer: gro_flush_timeout, with which the card's interrupts stay off."""
POLLERS = ("napi/", "ksoftirqd/")
"""Prefixes of the names of the kernel's threads that poll packets."""


@dataclass(frozen=True)
class _Answer:
    """The events of one cycle: its frame enters the send queue, goes to the driver, and leaves it. The
    answer is there (`arrived_ns`), is to be polled (`poll_request_ns`), is given to the kernel, passes to
    the protocol, and wakes the thread. `waking` is None if the thread polls for the answer. `interrupt`:
    the card's, if it asked for the poll. `local`: the far end is in this machine, behind a virtual link.
    """

    queued: Event
    started: Event
    sent: Event
    arrived_ns: int
    poll_request_ns: int
    handed: Event
    received: Event
    waking: Event | None
    interrupt: Event | None = None
    local: bool = False

    @property
    def end_ns(self) -> int:
        """When the thread was woken, or else when the protocol had the answer."""
        return self.received.time_ns if self.waking is None else self.waking.time_ns


def divided(explanation: Explanation, symbols: Symbols) -> Explanation:
    """Return the explanation with the wait for the answer divided; unchanged if the events do not show both
    frames, which is a doubt.
    """
    moment = explanation.moment
    lines = timelines(moment.table, symbols)
    answer = _answer(moment.table.events, moment.thread, moment.release_ns, moment.end_ns, lines)
    if answer is None:
        return replace(explanation, doubts=[*explanation.doubts, "the trace does not show both frames"])
    start_ns, end_ns = answer.queued.time_ns, answer.end_ns
    others = list[Part]()
    for part in explanation.parts:
        others += _outside(part, start_ns, end_ns)
    by_culprit: dict[Culprit, Part] = {}
    for culprit, span, cpu in _spans(answer, moment.table.events, lines):
        part = by_culprit.setdefault(culprit, Part(culprit))
        part.ns += span[1] - span[0]
        part.spans.append((*span, cpu))
        if culprit.kind is Kind.FAR_END:
            part.since_interrupt_ns = _since_interrupt_ns(answer, moment.table.events)
    others = [_with_packets(part, moment.table.events) for part in others]
    parts = sorted([*others, *by_culprit.values()], key=lambda part: part.begin_ns or end_ns)
    parts = [replace(part, culprit=_with_side(part.culprit, answer)) for part in parts]
    if sum(part.ns for part in parts) != explanation.latency_ns:
        return replace(explanation, doubts=[*explanation.doubts, "the parts of the answer do not add up"])
    return replace(explanation, parts=parts)


def _answer(
    events: Sequence[Event], thread: int, release_ns: int, end_ns: int, lines: dict[int, CpuTimeline]
) -> _Answer | None:
    """Find the frame that the thread sent first, and the answer that it got last: if the answer is late, the
    thread sends the frames of later cycles meanwhile.
    """
    within = [event for event in events if release_ns <= event.time_ns <= end_ns]
    queued = next((event for event in within if _sends(event, thread)), None)
    if queued is None:
        return None
    started, sent = (_later(within, name, queued) for name in (SENT, "net_dev_xmit"))
    waking = next(
        (
            event
            for event in reversed(within)
            if event.name == "sched_waking" and event.number("pid") == thread and event.pid != thread
        ),
        None,
    )
    if started is None or sent is None:
        return None
    if waking is not None and waking.time_ns < sent.time_ns:
        waking = None
    device = queued.text("name")
    received = next(
        (
            event
            for event in reversed(within)
            if event.name == "netif_receive_skb"
            and event.text("name") == device
            and sent.time_ns < event.time_ns
            and (waking is None or (event.cpu == waking.cpu and event.time_ns <= waking.time_ns))
        ),
        None,
    )
    if received is None:
        return None
    on_way = [
        event
        for event in within
        if sent.time_ns < event.time_ns <= received.time_ns
        and event.number("skbaddr") == received.number("skbaddr")
    ]
    # The kernel uses the address of a packet again, so the last event counts.
    handed = next(
        (event for event in reversed(on_way) if event.name in HANDED and event.text("name") == device),
        received,
    )
    far = next(
        (event for event in reversed(on_way) if event.name == SENT and event.time_ns <= handed.time_ns), None
    )
    poll_request_ns = max(_poll_request_ns(within, handed, lines), sent.time_ns)
    interrupt = _interrupt(within, poll_request_ns, sent.time_ns)
    if interrupt is not None:  # a virtual link has none: another packet had the same address
        far = None
    arrived_ns = poll_request_ns
    if far is not None and handed.name != BEFORE_POLL:
        left = _later(within, "net_dev_xmit", far)
        arrived_ns = handed.time_ns if left is None else min(left.time_ns, handed.time_ns)
    return _Answer(
        queued,
        started,
        sent,
        arrived_ns,
        poll_request_ns,
        handed,
        received,
        waking,
        interrupt,
        local=far is not None,
    )


def _interrupt(events: Sequence[Event], poll_request_ns: int, sent_ns: int) -> Event | None:
    """Return the interrupt of a card that asked for a poll; None if something else did."""
    if poll_request_ns <= sent_ns:
        return None
    return next(
        (event for event in events if event.name == "irq_handler_entry" and event.time_ns == poll_request_ns),
        None,
    )


def _since_interrupt_ns(answer: _Answer, events: Sequence[Event]) -> int | None:
    """Return the time (ns) from the previous interrupt of the card's queue to the one for the answer."""
    interrupt = answer.interrupt
    if interrupt is None:
        return None
    before = [
        event.time_ns
        for event in events
        if event.name == interrupt.name
        and event.number("irq") == interrupt.number("irq")
        and event.time_ns < interrupt.time_ns
    ]
    return interrupt.time_ns - before[-1] if before else None


def _with_side(culprit: Culprit, answer: _Answer) -> Culprit:
    """Return the culprit with its side, if that is known. Behind a virtual link there is neither a card nor a
    wire.
    """
    if culprit.kind is Kind.UNATTRIBUTED:
        return culprit
    far = DEVICE if answer.local else NOT_SELF
    return replace(culprit, side=far if culprit.kind is Kind.FAR_END else SELF)


def _with_packets(part: Part, events: Sequence[Event]) -> Part:
    """Name the interface whose packets a softirq received before the send or after the wake-up, and whether
    RPS steered them to the loop's CPU.
    """
    if part.culprit.kind is not Kind.SOFTIRQ or part.culprit.name != RECEIVE:
        return part
    got = [
        event
        for since, until, cpu in part.spans
        for event in events
        if event.name == "netif_receive_skb" and event.cpu == cpu and since <= event.time_ns < until
    ]
    if not got:
        return part
    device = Counter(event.text("name") for event in got).most_common(1)[0][0]
    packets = {event.number("skbaddr"): event for event in got if event.text("name") == device}
    steered = any(
        event.name in HANDED
        and event.text("name") == device
        and (packet := packets.get(event.number("skbaddr"))) is not None
        and event.cpu != packet.cpu
        and event.time_ns <= packet.time_ns
        for event in events
    )
    return replace(part, culprit=replace(part.culprit, until=device, mechanism="RPS" if steered else ""))


def _sends(event: Event, thread: int) -> bool:
    return event.name == "net_dev_queue" and event.pid == thread and not event.flags & IN_INTERRUPT


def _later(events: Sequence[Event], name: str, queued: Event) -> Event | None:
    """Return what happened next to a packet."""
    return next(
        (
            event
            for event in events
            if event.name == name
            and event.time_ns >= queued.time_ns
            and event.number("skbaddr") == queued.number("skbaddr")
        ),
        None,
    )


BEFORE_POLL = "netif_rx"
"""The driver that does not poll gives a packet to the kernel, which polls it then."""


def _poll_request_ns(events: Sequence[Event], handed: Event, lines: dict[int, CpuTimeline]) -> int:
    """Return when the card, or its interrupt, asked for the poll that found the answer, or else when the
    driver gave it to the kernel.
    """
    if handed.name == BEFORE_POLL:
        interrupt = lines[handed.cpu].before(handed.time_ns).interrupt
        since_ns = None if interrupt is None or interrupt.kind == "softirq" else interrupt.since_ns
        return handed.time_ns if since_ns is None else since_ns
    line = lines[handed.cpu]
    poll = line.before(handed.time_ns).interrupt
    by_softirq = poll is not None and poll.name == RECEIVE
    began_ns = poll.since_ns if poll is not None and by_softirq else handed.time_ns
    for event in reversed(events):
        if event.time_ns > (began_ns or handed.time_ns):
            continue
        raised = by_softirq and event.name == "softirq_raise" and event.number("vec") == RECEIVE_VECTOR
        woken = not by_softirq and event.name == "sched_waking" and event.number("pid") == handed.pid
        if (raised and event.cpu == handed.cpu) or woken:
            interrupt = lines[event.cpu].before(event.time_ns).interrupt
            since_ns = None if interrupt is None or interrupt.kind == "softirq" else interrupt.since_ns
            return event.time_ns if since_ns is None else since_ns
    return handed.time_ns


RECEIVE_VECTOR = 3
"""NET_RX_SOFTIRQ (include/linux/interrupt.h)"""


def _spans(
    answer: _Answer, events: Sequence[Event], lines: dict[int, CpuTimeline]
) -> Iterator[tuple[Culprit, tuple[int, int], int]]:
    """Yield (culprit, (start, end), CPU) of the wait, without a gap."""
    queued, started, sent = answer.queued, answer.started, answer.sent
    device, cpu = queued.text("name"), queued.cpu
    before = any(
        event.name == SENT
        and queued.time_ns <= event.time_ns < started.time_ns
        and event.text("name") == device
        for event in events
    )
    edges = (
        (Culprit(Kind.SEND_QUEUE, device, until=OTHER_FLOWS if before else ""), started.time_ns, cpu),
        (Culprit(Kind.DRIVER, device), sent.time_ns, started.cpu),
        (Culprit(Kind.FAR_END, device), answer.arrived_ns, sent.cpu),
    )
    since = queued.time_ns
    for culprit, until, where in edges:
        if until > since:
            yield culprit, (since, until), where
            since = until
    steered = "RPS" if answer.handed.cpu != answer.received.cpu else ""
    for until, seen, mechanism in (
        (answer.poll_request_ns, answer.handed, ""),
        (answer.handed.time_ns, answer.handed, ""),
        (answer.received.time_ns, answer.received, steered),
    ):
        if until <= since:
            continue
        others = any(
            event.name == "netif_receive_skb" and event.cpu == seen.cpu and since <= event.time_ns < until
            for event in events
        )
        poll = Culprit(Kind.POLL, device, mechanism=mechanism, until=OTHER_FLOWS if others else "")
        poller = _poller(lines[seen.cpu].before(seen.time_ns), seen.cpu)
        for span in lines[seen.cpu].spans(since, until):
            if until <= answer.poll_request_ns and not _polls(span.context):
                culprit = Culprit(Kind.POLL, device, until=TIMER)
            else:
                culprit = _instead(span.context, poller, answer.handed.pid, mechanism) or poll
            yield culprit, (span.start_ns, span.end_ns), seen.cpu
        since = until
    if answer.end_ns > since:
        yield Culprit(Kind.PROTOCOL, device), (since, answer.end_ns), answer.received.cpu


def _poller(context: Context, cpu: int) -> str:
    """Name what polled a packet: a thread of the kernel, or the softirq in another task."""
    name = "" if context.task is None else context.task.name
    return name if name.startswith(POLLERS) else f"the softirq on CPU {cpu}"


def _polls(context: Context) -> bool:
    """Return whether a CPU polls packets."""
    frame, task = context.interrupt, context.task
    if frame is None:
        return task is not None and task.name.startswith(POLLERS)
    return frame.name == RECEIVE


def _instead(context: Context, poller: str, giver: int, mechanism: str) -> Culprit | None:
    """Return what a CPU did instead of polling a packet; None if it polled, or was about to. `giver`: the
    task in which the driver gave the packet to the kernel.
    """
    frame, task = context.interrupt, context.task
    if _polls(context):
        return None
    if frame is not None and frame.kind == "irq":
        return Culprit(Kind.IRQ, frame.name, frame.key if isinstance(frame.key, int) else None)
    if frame is not None:
        return Culprit(Kind.SOFTIRQ if frame.kind == "softirq" else Kind.INTERRUPT, frame.name)
    if task is None or task.idle or task.name == poller or task.pid == giver:
        return None
    return Culprit(
        Kind.POLL_KEPT,
        task.name or f"pid {task.pid}",
        mechanism=mechanism,
        until=poller,
        priority=task.priority,
        pid=task.pid,
    )


def _outside(part: Part, start_ns: int, end_ns: int) -> list[Part]:
    """Return what remains of a part outside of an interval: nothing, or one part."""
    spans = [
        piece
        for since, until, cpu in part.spans
        for piece in ((since, min(until, start_ns), cpu), (max(since, end_ns), until, cpu))
        if piece[1] > piece[0]
    ]
    whole = sum(until - since for since, until, _ in part.spans)
    left = part.ns - whole + sum(until - since for since, until, _ in spans)
    if spans == part.spans:
        return [part]
    return [replace(part, ns=left, spans=spans)] if left else []
