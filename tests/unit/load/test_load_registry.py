# SPDX-License-Identifier: MIT
from __future__ import annotations

import pytest

from rtgauge.errors import InputError, MeasureError
from rtgauge.load import load_registry
from rtgauge.load.load import LoadContext
from rtgauge.load.resources import make_context, memory_groups
from tests.support.local_target import LocalTarget

GIB = 1 << 30


def context(
    total: int | None = 16 * GIB, available: int | None = 15 * GIB, peer: str | None = None
) -> LoadContext:
    return LoadContext(LocalTarget(hidden=["unshare"]), 4, total, available, bound_s=100, peer=peer)


def option(argv: list[str], name: str) -> str:
    return argv[argv.index(name) + 1]


def test_the_names() -> None:
    own = ["idle", "cpu", "memory", "network", "scheduler", "cache", "papers"]
    assert load_registry.names()[: len(own)] == own
    assert all(load_registry.get(name).name == name for name in load_registry.names())


@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ("memroy", "did you mean 'memory'"),
        ("zzz", r"there are: .*cpu"),
        ("", r"there are: .*cpu"),
    ],
)
def test_unknown_name(wrong: str, reported: str) -> None:
    with pytest.raises(InputError, match=reported):
        load_registry.get(wrong)


def test_left_out_says_what_to_install() -> None:
    assert load_registry.get("idle").left_out(LocalTarget()) is None
    out = load_registry.get("papers").left_out(LocalTarget(hidden=["iperf3", "stress-ng"]))
    assert out is not None
    assert (out.what, out.reason, out.remedy) == (
        "load papers",
        "stress-ng and iperf3 are not installed",
        "apt-get install iperf3 stress-ng",
    )
    out = load_registry.get("scheduler").left_out(LocalTarget(hidden=["hackbench"]))
    assert out is not None
    assert (out.reason, out.remedy) == ("hackbench is not installed", "apt-get install rt-tests")


def test_cache_has_one_worker_for_each_allowed_cpu() -> None:
    (part,) = load_registry.get("cache").parts(context())
    assert option(part.argv, "--cache") == "4"
    assert "--cache-no-affinity" in part.argv


def test_cpu_takes_every_cpu_and_every_method() -> None:
    (part,) = load_registry.get("cpu").parts(context())
    assert (
        option(part.argv, "--cpu"),
        option(part.argv, "--cpu-method"),
        option(part.argv, "--timeout"),
    ) == ("4", "all", "100s")


def test_memory_takes_seventy_percent_in_all() -> None:
    (part,) = load_registry.get("memory").parts(context())
    given = int(option(part.argv, "--vm-bytes"))
    assert option(part.argv, "--vm") == "5"
    assert given == part.wanted["bytes_given"] == pytest.approx(0.7 * 16 * GIB, abs=5 * 4096)
    assert part.notes == ()


@pytest.mark.parametrize("available", [8 * GIB, 100_000, 0])
def test_memory_takes_no_more_than_there_is(available: int) -> None:
    (part,) = load_registry.get("memory").parts(context(available=available))
    assert int(option(part.argv, "--vm-bytes")) <= max(0.85 * available, 5 * 4096)
    assert "MiB are available" in part.notes[0]


def test_memory_that_was_not_filled_is_reported() -> None:
    (part,) = load_registry.get("memory").parts(context())
    given = part.wanted["bytes_given"]
    assert part.shortfall({"resident_bytes_max": given}) is None
    assert part.shortfall({}) is None
    note = part.shortfall({"resident_bytes_max": given // 2})
    assert note is not None
    assert "35% of memory instead of 70%" in note


def test_memory_of_unknown_size() -> None:
    with pytest.raises(MeasureError, match="leave this load out"):
        load_registry.get("memory").parts(context(total=None))


@pytest.mark.parametrize(
    ("name", "reported"), [("cpu:3", "write cpu"), ("stall:x", "stall"), ("idel:3", "did you mean 'idle'")]
)
def test_words_that_a_load_does_not_take(name: str, reported: str) -> None:
    with pytest.raises(InputError, match=reported):
        load_registry.get(name)


def test_papers_is_the_three_together() -> None:
    assert [part.program for part in load_registry.get("papers").parts(context())] == [
        "iperf3",
        "stress-ng",
        "stress-ng",
    ]


def test_network_uses_the_options_of_the_paper() -> None:
    (part,) = load_registry.get("network").parts(context())
    assert (
        option(part.argv, "--parallel"),
        option(part.argv, "--length"),
        option(part.argv, "--bitrate"),
    ) == ("100", "65536", "1000000")
    assert "--reverse" in part.argv
    assert option(part.argv, "--client") == "127.0.0.1"
    assert part.wanted["over"] == "loopback"
    assert "so they take less CPU time" in part.notes[0]


@pytest.mark.parametrize(
    ("peer", "host", "port"),
    [
        ("box:7000", "box", "7000"),
        ("10.0.0.2", "10.0.0.2", "5201"),
        ("[fd00::2]:5201", "fd00::2", "5201"),
        ("[fe80::1%eth0]", "fe80::1%eth0", "5201"),
    ],
)
def test_network_with_a_peer(peer: str, host: str, port: str) -> None:
    (part,) = load_registry.get("network").parts(context(peer=peer))
    assert part.argv[0] == "iperf3"
    assert (option(part.argv, "--client"), option(part.argv, "--port")) == (host, port)
    assert "--reverse" not in part.argv


@pytest.mark.parametrize(
    "peer",
    ["", "-R", "box:0", "box:65536", "box:x", "a b", "box;reboot", "fd00::2:5201:", "box:5201\n", "[box]:1"],
)
def test_a_peer_that_is_none(peer: str) -> None:
    with pytest.raises(InputError, match="is not HOST:PORT"):
        load_registry.get("network").parts(context(peer=peer))


def test_context_of_this_machine() -> None:
    actual = make_context(LocalTarget(), expected_s=10)
    assert actual.cpus >= 1
    assert actual.memory_total is not None
    assert actual.memory_available is not None
    assert 0 < actual.memory_available <= actual.memory_total
    assert actual.bound_s > 10


def test_context_obeys_the_memory_limit_of_a_control_group() -> None:
    target = LocalTarget(
        {
            "/proc/meminfo": "MemTotal:  8000000 kB\nMemAvailable:  7000000 kB\n",
            "/proc/self/cgroup": "0::/a/b\n",
            "/sys/fs/cgroup/a/memory.max": "1000000\n",
            "/sys/fs/cgroup/a/memory.current": "400000\n",
            "/sys/fs/cgroup/a/b/memory.max": "max\n",
            "/sys/fs/cgroup/a/b/memory.current": "1\n",
        }
    )
    assert make_context(target, expected_s=1).memory_available == 600000


def test_memory_groups() -> None:
    assert memory_groups("5:memory:/x\n1:cpu:/\n") == [
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
        ("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "/sys/fs/cgroup/memory/x/memory.usage_in_bytes"),
    ]
    assert memory_groups("junk\n::\n\n") == []
