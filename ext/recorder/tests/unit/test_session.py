# SPDX-License-Identifier: MIT
import pytest

from rtgauge_ext.recorder.engine_session import buffer_kb, engine_arguments

GIB_KB = 1 << 20


@pytest.mark.parametrize(
    ("memory_kb", "cpus", "wanted_kb"),
    [
        (16 * GIB_KB, 8, 8192),
        (GIB_KB, 4, 4096),
        (GIB_KB // 2, 4, 2048),
        (GIB_KB // 16, 4, 512),
        (64 * GIB_KB, 512, 2048),
    ],
)
def test_buffers_fit_the_machine(memory_kb: int, cpus: int, wanted_kb: int) -> None:
    assert buffer_kb(memory_kb, cpus) == wanted_kb


def test_events_wait_no_longer_than_their_buffer_lasts() -> None:
    arguments = engine_arguments({"period": "1ms"}, 812, "rings", "explain-rings")
    words = {name: value for name, _, value in (word.partition("=") for word in arguments)}
    usual_ns_per_kb = 20_000_000 / 512
    assert 0 < int(words["--drain-ns"]) <= int(words["--explain-buffer-kb"]) * usual_ns_per_kb
    assert words["--pid"] == "812"


def test_who_spares_cpu_time_reads_rarely_and_keeps_less() -> None:
    usual = engine_arguments({}, 812, "rings", "explain-rings")
    sparing = engine_arguments({}, 812, "rings", "explain-rings", spares=True)
    assert "--drain-ns=500000000" in sparing
    assert "--explain-every-ns=10000000000" in usual and "--explain-every-ns=20000000000" in sparing
