# SPDX-License-Identifier: MIT
"""Late answers in events drawn by hand: each has the cause that was drawn, and its parts add up exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.messages import missing
from tests.unit.explain.made_events import IDLE, MEASURED, RELEASE, THREAD, Story

from rtgauge.explain.analysis.attribution import explain
from rtgauge.explain.analysis.culprits import remedy_of, with_names
from rtgauge.explain.analysis.explanation import (
    CARD,
    DEVICE,
    NOT_SELF,
    SELF,
    Explanation,
    Kind,
    culprit_name,
    part_words,
)
from rtgauge.explain.analysis.mechanisms import cause_words
from rtgauge.explain.analysis.ranking import ranked_culprits
from rtgauge.explain.trace.formats import Symbols
from rtgauge.record.facts import Coalescing, Facts, NetworkInterface
from rtgauge_ext.network.late_answer import OTHER_FLOWS, TIMER, divided

FRAME, ANSWER, OTHER = 0x100, 0x200, 0x300
RECEIVE = 3
NAPI = ("napi/near-9", 300, 49)
HOG = ("hog", 400, 9)


def sent(story: Story, queued: float = 6, started: float = 7, device: str = "near") -> Story:
    """The thread sends a frame on CPU 1, and sleeps."""
    story.switch(5, 1, IDLE, MEASURED).at(queued, 1, "net_dev_queue", skbaddr=FRAME, name=device)
    sleeping = started > 12
    if sleeping:
        story.switch(12, 1, MEASURED, IDLE, state=1)
    story.at(started, 1, "net_dev_start_xmit", skbaddr=FRAME, name=device)
    story.at(started + 1, 1, "net_dev_xmit", skbaddr=FRAME, name=device)
    return story if sleeping else story.switch(12, 1, MEASURED, IDLE, state=1)


def received(
    story: Story, handed: float, at: float, cpus: tuple[int, int] = (0, 0), gives: str = "netif_rx"
) -> Story:
    """A softirq gives the answer to the kernel and wakes the thread 2 us later."""
    first, last = cpus
    story.at(handed, first, gives, skbaddr=ANSWER, name="near")
    story.at(at, last, "netif_receive_skb", skbaddr=ANSWER, name="near")
    story.at(at + 2, last, "sched_waking", comm="measured", pid=THREAD, prio=19, target_cpu=1)
    return story.switch(at + 5, 1, IDLE, MEASURED)


def softirq(story: Story, begin: float, end: float, cpu: int = 0) -> Story:
    story.at(begin - 0.5, cpu, "softirq_raise", vec=RECEIVE).at(begin, cpu, "softirq_entry", vec=RECEIVE)
    return story.at(end, cpu, "softirq_exit", vec=RECEIVE)


def begun() -> Story:
    return Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(0.1, 1)


def parts(story: Story, us: float) -> dict[tuple[Kind, str], float]:
    parts_ns = explained(story, us)
    assert parts_ns.doubts == []
    return {(part.culprit.kind, part.culprit.until): part.ns / 1000 for part in parts_ns.parts}


def explained(story: Story, us: float) -> Explanation:
    symbols = Symbols((), ())
    whole = explain(story.moment(us), symbols)
    actual = divided(whole, symbols)
    assert sum(part.ns for part in actual.parts) == whole.latency_ns
    assert all(part.ns == sum(end - start for start, end, _ in part.spans) for part in actual.parts)
    assert all(part_words(part) for part in actual.parts)
    return actual


def test_a_slow_device_is_the_wire_and_the_device() -> None:
    story = softirq(received(sent(begun()), 800, 805), 802, 810)
    parts_ns = parts(story, 815)
    assert parts_ns[Kind.FAR_END, ""] == pytest.approx(792)
    assert parts_ns[Kind.SEND_QUEUE, ""] == parts_ns[Kind.DRIVER, ""] == pytest.approx(1)
    assert parts_ns[Kind.PROTOCOL, ""] == pytest.approx(2)


def test_the_far_end_in_this_machine_ends_where_it_sends() -> None:
    story = softirq(received(sent(begun()), 804, 805, gives="napi_gro_receive_entry"), 802, 810)
    story.at(479, 0, "net_dev_start_xmit", skbaddr=ANSWER, name="far")
    story.at(480, 0, "net_dev_xmit", skbaddr=ANSWER, name="far")
    parts_ns = parts(story, 815)
    assert parts_ns[Kind.FAR_END, ""] == pytest.approx(472)
    assert parts_ns[Kind.POLL, TIMER] == pytest.approx(321.5)
    sides = {part.culprit.kind: part.culprit.side for part in explained(story, 815).parts}
    assert sides[Kind.FAR_END] == DEVICE
    assert sides[Kind.POLL] == sides[Kind.PROTOCOL] == SELF


def card(story: Story, *interrupts: float) -> Story:
    """Interrupts of a card's queue on CPU 0; the last one asks for the poll that finds the answer."""
    for at in interrupts:
        story.at(at, 0, "irq_handler_entry", irq=31, name="near-rx-0")
        story.at(at + 1, 0, "softirq_raise", vec=RECEIVE)
        story.at(at + 2, 0, "irq_handler_exit", irq=31)
    story.at(interrupts[-1] + 3, 0, "softirq_entry", vec=RECEIVE)
    return story.at(interrupts[-1] + 20, 0, "softirq_exit", vec=RECEIVE)


def test_the_wire_and_the_device_end_at_the_interrupt() -> None:
    story = card(sent(begun()), 800)
    story.at(
        700, 0, "net_dev_start_xmit", skbaddr=ANSWER, name="another"
    )  # an earlier packet at this address
    received(story, 805, 806, gives="napi_gro_receive_entry")
    (far,) = [part for part in explained(story, 815).parts if part.culprit.kind is Kind.FAR_END]
    assert far.culprit.side == NOT_SELF
    assert far.ns == 792_000
    assert far.spans[0][1] - RELEASE == 800_000
    assert far.since_interrupt_ns is None


@pytest.mark.parametrize(("rx_us", "kind"), [(500, Kind.CARD_WAITED), (300, Kind.FAR_END), (0, Kind.FAR_END)])
def test_a_card_that_interrupts_when_its_coalescing_time_is_over(rx_us: int, kind: Kind) -> None:
    story = card(sent(begun()), 300, 800)
    received(story, 805, 806, gives="napi_gro_receive_entry")
    facts = Facts(network=NetworkInterface(coalescing=Coalescing(rx_us=rx_us)))
    named = with_names(explained(story, 815), facts)
    assert sum(part.ns for part in named.parts) == named.latency_ns
    far = [part for part in named.parts if part.culprit.kind in {Kind.FAR_END, Kind.CARD_WAITED}][-1]
    assert far.ns == (500_000 if kind is Kind.CARD_WAITED else 792_000)
    assert far.spans[-1][1] - RELEASE == 800_000
    assert far.since_interrupt_ns == 500_000
    assert far.culprit.kind is kind
    assert far.culprit.side == (CARD if kind is Kind.CARD_WAITED else NOT_SELF)
    assert part_words(far)
    ranked = ranked_culprits([named])[0]
    assert ranked.rules[0] == "network-interrupts-at-once"


@pytest.mark.parametrize("steered", [False, True])
def test_packets_of_another_interface_on_the_cpu_of_the_loop(steered: bool) -> None:
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1)
    story.at(-5, 1, "softirq_entry", vec=RECEIVE).at(600, 1, "softirq_exit", vec=RECEIVE).timer(0.1, 1)
    for at in range(10, 600, 50):
        story.at(at - 8, 0 if steered else 1, "netif_rx", skbaddr=OTHER + at, name="other")
        story.at(at, 1, "netif_receive_skb", skbaddr=OTHER + at, name="other")
    story.switch(605, 1, IDLE, MEASURED)
    for at, name in ((606, "net_dev_queue"), (607, "net_dev_start_xmit"), (608, "net_dev_xmit")):
        story.at(at, 1, name, skbaddr=FRAME, name="near")
    story.switch(612, 1, MEASURED, IDLE, state=1)
    softirq(received(story, 804, 805), 802, 810)
    parts_ns = explained(story, 815)
    packets = [part for part in parts_ns.parts if part.culprit.kind is Kind.SOFTIRQ]
    assert [part.culprit.until for part in packets] == ["other"]
    assert packets[0].ns == pytest.approx(596_000, abs=6_000)
    assert packets[0].culprit.mechanism == ("RPS" if steered else "")
    assert packets[0].culprit.side == SELF
    words = culprit_name(packets[0].culprit)
    assert words == f"softirq NET_RX (packets of other{', steered by RPS' if steered else ''})"
    ranked = next(item for item in ranked_culprits([parts_ns]) if item.culprit == packets[0].culprit)
    remedy = remedy_of(ranked, Facts())
    assert remedy is not None
    assert not missing(remedy.what, *(["rps_cpus"] if steered else ["another CPU", "interrupts of other"]))


def test_an_earlier_packet_at_the_same_address_is_another_one() -> None:
    story = softirq(received(sent(begun()), 800, 805), 802, 810)
    for at in (100, 400):
        story.at(at, 0, "netif_rx", skbaddr=ANSWER, name="near")
        story.at(at + 1, 0, "netif_receive_skb", skbaddr=ANSWER, name="near")
    assert parts(story, 815)[Kind.FAR_END, ""] == pytest.approx(792)


@pytest.mark.parametrize("others", [False, True])
def test_a_queueing_discipline_and_the_flow_before_it(others: bool) -> None:
    story = softirq(received(sent(begun(), started=700), 800, 805), 802, 810)
    if others:
        story.at(300, 0, "net_dev_start_xmit", skbaddr=OTHER, name="near")
    parts_ns = parts(story, 815)
    assert parts_ns[Kind.SEND_QUEUE, OTHER_FLOWS if others else ""] == pytest.approx(694)


def test_a_task_before_the_thread_that_polls() -> None:
    story = sent(begun()).switch(15, 0, IDLE, HOG)
    story.at(21, 0, "net_dev_start_xmit", skbaddr=ANSWER, name="far")
    story.at(23, 0, "net_dev_xmit", skbaddr=ANSWER, name="far")
    story.at(22, 0, "sched_waking", comm=NAPI[0], pid=NAPI[1], prio=NAPI[2], target_cpu=0)
    story.switch(900, 0, HOG, NAPI)
    received(story, 905, 907, gives="napi_gro_receive_entry")
    parts_ns = parts(story, 915)
    assert parts_ns[Kind.POLL_KEPT, NAPI[0]] == pytest.approx(877)
    assert "task hog" in {part_words(part)[:8] for part in explained(story, 915).parts}


def test_packets_of_another_flow_before_the_answer() -> None:
    story = softirq(sent(begun()), 20, 910)
    for at in range(100, 900, 100):
        story.at(at, 0, "netif_receive_skb", skbaddr=OTHER, name="near")
    story = received(story, 31, 905)
    assert parts(story, 915)[Kind.POLL, OTHER_FLOWS] == pytest.approx(874, abs=2)


def test_the_cause_in_a_line_names_the_culprit_and_its_side() -> None:
    queued = softirq(received(sent(begun(), started=700), 800, 805), 802, 810)
    queued.at(300, 0, "net_dev_start_xmit", skbaddr=OTHER, name="near")
    words = cause_words(ranked_culprits([explained(queued, 815)]), virtual=False)
    assert words is not None
    assert not missing(words, "send queue (self:", "send queue of near behind other flows", "85.2 %")
    slow = softirq(received(sent(begun()), 804, 805, gives="napi_gro_receive_entry"), 802, 810)
    words = cause_words(ranked_culprits([explained(slow, 815)]), virtual=False)
    assert words is not None
    assert "slow (card, wire or device, 9" in words
    hog = begun().switch(5, 1, IDLE, HOG)
    hog.switch(700, 1, HOG, MEASURED).at(702, 1, "net_dev_queue", skbaddr=FRAME, name="near")
    hog.at(703, 1, "net_dev_start_xmit", skbaddr=FRAME, name="near")
    hog.at(704, 1, "net_dev_xmit", skbaddr=FRAME, name="near").switch(706, 1, MEASURED, IDLE, state=1)
    late = explained(softirq(received(hog, 710, 713), 711, 720), 725)
    words = cause_words(ranked_culprits([late]), virtual=False)
    assert words is not None
    assert words.startswith("hog (")
    assert ", self) ran instead: 9" in words


def test_rps_takes_the_answer_to_a_cpu_that_is_busy() -> None:
    story = softirq(sent(begun()), 18, 25).switch(10, 2, IDLE, HOG)
    received(story, 20, 805, (0, 2))
    softirq(story, 800, 810, cpu=2)
    whole = explained(story, 815)
    (kept,) = [part for part in whole.parts if part.culprit.kind is Kind.POLL_KEPT]
    assert (kept.culprit.name, kept.culprit.mechanism) == ("hog", "RPS")
    assert kept.ns == pytest.approx(779_500, abs=1_000)


def test_a_late_send_is_the_machines_own() -> None:
    story = begun().switch(5, 1, IDLE, HOG)
    story.switch(700, 1, HOG, MEASURED).at(702, 1, "net_dev_queue", skbaddr=FRAME, name="near")
    story.at(703, 1, "net_dev_start_xmit", skbaddr=FRAME, name="near")
    story.at(704, 1, "net_dev_xmit", skbaddr=FRAME, name="near").switch(706, 1, MEASURED, IDLE, state=1)
    softirq(received(story, 710, 713), 711, 720)
    parts_ns = parts(story, 725)
    assert parts_ns[Kind.TASK, ""] == pytest.approx(695, abs=4)
    assert parts_ns[Kind.FAR_END, ""] == pytest.approx(6)


def test_a_thread_that_polls_for_its_answer() -> None:
    story = begun().switch(5, 1, IDLE, MEASURED).at(6, 1, "net_dev_queue", skbaddr=FRAME, name="near")
    story.at(7, 1, "net_dev_start_xmit", skbaddr=FRAME, name="near")
    story.at(8, 1, "net_dev_xmit", skbaddr=FRAME, name="near")
    story.at(800, 0, "netif_rx", skbaddr=ANSWER, name="near")
    softirq(story, 802, 810).at(805, 0, "netif_receive_skb", skbaddr=ANSWER, name="near")
    parts_ns = parts(story, 815)
    assert parts_ns[Kind.FAR_END, ""] == pytest.approx(792)
    assert parts_ns[Kind.OWN, ""] == pytest.approx(11, abs=1)


def test_without_frames_the_time_is_not_split_and_a_note_says_so() -> None:
    story = received(begun().switch(5, 1, IDLE, MEASURED).switch(12, 1, MEASURED, IDLE, state=1), 800, 805)
    parts_ns = explained(story, 815)
    assert parts_ns.doubts == ["the trace does not show both frames"]
    assert not {part.culprit.kind for part in parts_ns.parts} & {Kind.FAR_END, Kind.POLL}


NAMES = (
    "net_dev_queue",
    "net_dev_start_xmit",
    "net_dev_xmit",
    "netif_rx",
    "netif_receive_skb",
    "sched_waking",
    "softirq_raise",
    "softirq_entry",
    "softirq_exit",
)


@given(
    st.lists(
        st.tuples(
            st.floats(-10, 900), st.integers(0, 2), st.sampled_from(NAMES), st.sampled_from([FRAME, ANSWER])
        ),
        max_size=30,
    )
)
def test_the_parts_of_any_events_add_up(events: list[tuple[float, int, str, int]]) -> None:
    story = sent(begun())
    for at, cpu, name, packet in events:
        story.at(at, cpu, name, skbaddr=packet, name="near", vec=RECEIVE, pid=THREAD, target_cpu=1)
    symbols = Symbols((), ())
    whole = explain(story.moment(815), symbols)
    assert sum(part.ns for part in divided(whole, symbols).parts) == whole.latency_ns
