# SPDX-License-Identifier: MIT
"""The counts are those that Linux 6.18 gave."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.record.facts import Facts
from rtgauge.record.model import Severity, ThreadCounts
from rtgauge.system.collect_facts import facts
from rtgauge.system.scheduling import mechanisms, throttled
from tests.unit.system.machines import packed, texts

MS = 1_000_000


def system(
    release: str,
    *,
    runtime: str = "950000",
    group: str | None = None,
    fair: str | None = None,
    config: str | None = None,
    extension: bool = False,
) -> Facts:
    files = {
        "/proc/sys/kernel/osrelease": release,
        "/proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC",
        "/proc/sys/kernel/sched_rt_runtime_us": runtime,
        "/proc/sys/kernel/sched_rt_period_us": "1000000",
    }
    if group is not None:
        files |= {
            "/proc/self/cgroup": "1:cpu:/job\n0::/\n",
            "/sys/fs/cgroup/cpu/cpu.rt_runtime_us": runtime,
            "/sys/fs/cgroup/cpu/cpu.rt_period_us": "1000000",
            "/sys/fs/cgroup/cpu/job/cpu.rt_runtime_us": group,
            "/sys/fs/cgroup/cpu/job/cpu.rt_period_us": "1000000",
        }
    if fair is not None:
        files["/sys/kernel/debug/sched/fair_server/cpu0/runtime"] = fair
    batch = texts(files)
    if extension:
        batch |= texts({"/sys/kernel/sched_ext/state": "enabled", "/sys/kernel/sched_ext/root/ops": "qmap"})
    if config is not None:
        batch |= {"/proc/config.gz": packed(config)}
    return facts(batch)


GROUPED = "CONFIG_RT_GROUP_SCHED=y\n"
PLAIN = "CONFIG_HZ=250\n"


@pytest.mark.parametrize(
    ("facts_", "names"),
    [
        (system("6.1.0"), ["real-time throttling"]),
        (system("6.1.0", runtime="-1"), []),
        (system("6.1.0", runtime="1000000"), []),
        (system("6.12.0", config=PLAIN), ["the fair server"]),
        (system("6.12.0", config=PLAIN, runtime="-1"), ["the fair server"]),
        (system("6.12.0", config=PLAIN, fair="0"), []),
        (system("7.3.0", config=PLAIN, fair="0", extension=True), ["the ext server"]),
        (system("6.18.0", config=PLAIN, fair="0", extension=True), []),
        (system("6.18.0", config=GROUPED, group="950000"), ["real-time throttling", "the fair server"]),
        (system("6.18.0", config=GROUPED, group="950000", fair="0"), ["real-time throttling"]),
        (
            system("6.18.0", config=GROUPED, group="200000", fair="0"),
            ["real-time throttling", "the limit of the cgroup /job"],
        ),
        (system("6.1.0", runtime="-1", group="200000"), ["the limit of the cgroup /job"]),
        (system("weird"), ["real-time throttling", "the fair server"]),
    ],
)
def test_which_limits_act(facts_: Facts, names: list[str]) -> None:
    assert [
        next(name for name in names if limit.name.startswith(name)) for limit in mechanisms(facts_)
    ] == names


BOTH = system("6.18.0", config=GROUPED, group="950000")
FAIR_ONLY = system("6.18.0", config=GROUPED, group="-1", runtime="-1")


@pytest.mark.parametrize(
    ("counts", "max_latency_ns", "facts_", "which"),
    [
        # cyclictest at priority 98 beside a FIFO hog at 50
        (
            ThreadCounts(voluntary_switches=1668, involuntary_switches=1, run_delay_ns=98_616_067),
            49_778_000,
            BOTH,
            "real-time throttling",
        ),
        (
            ThreadCounts(voluntary_switches=1721, involuntary_switches=0, run_delay_ns=48_246_192),
            49_162_000,
            BOTH,
            "real-time throttling",
        ),
        (
            ThreadCounts(voluntary_switches=1900, involuntary_switches=1, run_delay_ns=97_801_720),
            50_385_000,
            FAIR_ONLY,
            "the fair server",
        ),
        # a loop at priority 98 that never sleeps has no latency
        (
            ThreadCounts(voluntary_switches=3, involuntary_switches=2, run_delay_ns=107_249_718),
            None,
            BOTH,
            "real-time throttling",
        ),
        (
            ThreadCounts(voluntary_switches=1, involuntary_switches=5, run_delay_ns=160_620_993),
            None,
            FAIR_ONLY,
            "the fair server",
        ),
        (None, 49_000_000, BOTH, "real-time throttling"),
    ],
)
def test_held_back(
    counts: ThreadCounts | None, max_latency_ns: int | None, facts_: Facts, which: str
) -> None:
    mark = throttled(counts, facts_, max_latency_ns=max_latency_ns, policy="fifo", series=1)
    assert mark is not None
    assert (mark.name, mark.severity, mark.series) == ("throttled", Severity.DOUBTFUL, 1)
    assert mark.detail.startswith(which)
    assert ("sched_rt_runtime_us=-1" in mark.detail) == (facts_ is BOTH)
    assert "fair_server/cpuN/runtime" in mark.detail


@pytest.mark.parametrize(
    ("counts", "max_latency_ns", "facts_", "policy"),
    [
        # nothing but a normal task beside it
        (
            ThreadCounts(voluntary_switches=2518, involuntary_switches=0, run_delay_ns=1_653_238),
            39_000,
            BOTH,
            "fifo",
        ),
        # limits lifted and no normal task: involuntary switches, yet no waiting
        (
            ThreadCounts(voluntary_switches=2, involuntary_switches=4, run_delay_ns=101_629),
            None,
            BOTH,
            "fifo",
        ),
        # ten minutes at 100 us: the sum of small waits is long
        (
            ThreadCounts(voluntary_switches=6_000_000, involuntary_switches=7, run_delay_ns=4_000 * MS),
            60_000,
            BOTH,
            "fifo",
        ),
        (
            ThreadCounts(voluntary_switches=1000, involuntary_switches=0, run_delay_ns=200 * MS),
            200 * MS,
            BOTH,
            "fifo",
        ),
        (
            ThreadCounts(voluntary_switches=1000, involuntary_switches=900, run_delay_ns=5_000 * MS),
            50 * MS,
            BOTH,
            "other",
        ),
        (
            ThreadCounts(voluntary_switches=10, involuntary_switches=9, run_delay_ns=500 * MS),
            50 * MS,
            system("6.1.0", runtime="-1"),
            "rr",
        ),
        (ThreadCounts(), 5 * MS, system("6.1.0", runtime="999999"), "fifo"),
        (None, None, BOTH, "fifo"),
    ],
)
def test_not_held_back(
    counts: ThreadCounts | None, max_latency_ns: int | None, facts_: Facts, policy: str
) -> None:
    assert throttled(counts, facts_, max_latency_ns=max_latency_ns, policy=policy) is None


def test_servers_that_the_explanation_shows_are_not_guessed() -> None:
    for facts_, guessed in ((FAIR_ONLY, False), (BOTH, True)):
        mark = throttled(None, facts_, max_latency_ns=49 * MS, policy="fifo", servers_traced=True)
        assert (mark is not None) == guessed
    assert mark is not None
    assert "server" not in mark.detail


NUMBER = st.one_of(st.none(), st.integers(0, 2**63 - 1))


@given(
    st.builds(ThreadCounts, voluntary_switches=NUMBER, involuntary_switches=NUMBER, run_delay_ns=NUMBER),
    NUMBER,
    st.text(max_size=8),
    st.one_of(st.text(max_size=8), st.integers(-(10**7), 10**7).map(str)),
)
def test_whatever_the_target_says(
    counts: ThreadCounts, latency: int | None, release: str, number: str
) -> None:
    throttled(
        counts,
        system(release, runtime=number, fair=number, group=number),
        max_latency_ns=latency,
        policy="fifo",
    )
