# SPDX-License-Identifier: MIT
"""What programs print, and /proc, read without ever failing."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.load.network import traffic
from rtgauge.load.processes import count_alive, descendants, parse_all, parse_stat, resident_bytes
from rtgauge.load.scheduler import rounds
from rtgauge.target.file_batch import Files
from rtgauge.target.local import read_local


def stat(
    pid: int, name: str, parent: int, state: str = "S", ticks: tuple[int, int, int, int] = (1, 2, 3, 4)
) -> str:
    utime, stime, cutime, cstime = ticks
    return (
        f"{pid} ({name}) {state} {parent} 1 1 0 -1 4194304 1 0 0 0 {utime} {stime} {cutime} {cstime} 20 "
        "0 1 0 5 10 20 18446744073709551615\n"
    )


def test_stat_of_a_process_with_a_nasty_name() -> None:
    process = parse_stat(stat(7, "a) S 1 (b\n)", 3))
    assert process is not None
    assert (process.pid, process.name, process.parent, process.state, process.ticks) == (
        7,
        "a) S 1 (b\n)",
        3,
        "S",
        10,
    )


def test_own_stat() -> None:
    actual = parse_all(read_local([f"/proc/{os.getpid()}/stat"]))[os.getpid()]
    assert actual.parent == os.getppid()


def test_descendants_and_who_lives() -> None:
    lines = [
        stat(1, "init", 0),
        stat(10, "guard", 1),
        stat(11, "work", 10),
        stat(12, "worker", 11),
        stat(13, "worker", 11, "Z"),
        stat(20, "worker", 1),
    ]
    processes = parse_all(
        Files({str(i): {"text": line} for i, line in enumerate(lines)} | {"gone": {"error": "ENOENT"}})
    )
    tree = descendants(processes, 10)
    assert [process.pid for process in tree] == [10, 11, 12, 13]
    assert count_alive(tree, "work") == 2
    assert descendants(processes, 99) == []


def test_resident() -> None:
    assert (
        resident_bytes(
            Files(
                {
                    "a": {"text": "Name:\tx\nVmRSS:\t     100 kB\n"},
                    "b": {"error": "ENOENT"},
                    "c": {"text": "Name:\tkthread\n"},
                }
            )
        )
        == 102400
    )
    assert resident_bytes(read_local(["/proc/self/status"])) > 1_000_000


def test_rounds() -> None:
    log = (
        "Running in process mode with 10 groups using 40 file descriptors each (== 400 tasks)\nEach "
        "sender will pass 100 messages of 100 bytes\nTime: 0.500\n"
    )
    assert rounds(log * 2) == {"rounds": 2, "round_mean_s": 0.5}
    assert rounds("") == {"rounds": 0, "round_mean_s": None}


def document(sent: int, received: int) -> dict[str, object]:
    def total(size: int) -> dict[str, object]:
        return {"seconds": 4.0, "bytes": size, "bits_per_second": size * 2.0}

    return {"end": {"streams": [{}] * 100, "sum_sent": total(sent), "sum_received": total(received)}}


def test_traffic_of_the_side_that_counted() -> None:
    log = "iperf3: the client has terminated\n" + json.dumps(document(0, 50)) + "\niperf3: interrupt\n"
    assert traffic(log) == {"bits_per_second": 100.0, "network_s": 4.0, "streams": 100}
    assert traffic(json.dumps(document(70, 0)))["bits_per_second"] == 140.0


@pytest.mark.parametrize(
    "log",
    [
        "",
        "{",
        '{"end":{}}',
        '{"end":{"sum_sent":1,"sum_received":2}}',
        '{"error":"unable to connect"}',
        "{" * 100_000,
    ],
)
def test_traffic_missing_from_the_log_is_unknown(log: str) -> None:
    assert traffic(log) == {"bits_per_second": None, "network_s": None, "streams": None}


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner),
        st.dictionaries(
            st.sampled_from(["end", "sum_sent", "sum_received", "bytes", "seconds", "streams"]), inner
        ),
    ),
)


@given(
    st.one_of(
        st.text(), JSON.map(json.dumps), st.from_regex(r"[0-9]{1,3} \(.*\) [SRZ]( -?[0-9]{1,22}){0,30}\n?")
    )
)
def test_hostile_texts_never_raise(text: str) -> None:
    parse_stat(text)
    traffic(text)
    traffic(json.dumps(document(1, 2)).replace("4.0", json.dumps(text)))
    rounds(text)
    resident_bytes(Files({"x": {"text": text}}))
