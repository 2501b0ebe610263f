# SPDX-License-Identifier: MIT
"""Far ends as they are written, and the parameters of the probe path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import InputError, MeasureError
from rtgauge.probe.descriptor import normalise
from rtgauge_ext.network.far_end import check_far_end, far_end_words, path_to, resolved
from rtgauge_ext.network.path_probe import PROBE

GOOD = [
    "icmp:board", "icmp:10.0.0.1", "icmp:fe80::1%eth0", "icmp:[::1]", "udp:board:7", "udp:[fe80::1%eth0]:65535",
    "eth:eth1,02:00:00:00:00:aF", "eth:eth1,02:00:00:00:00:01,0x88b5", "ethercat:enp3s0",
]  # fmt: skip
WRONG = [
    "", "board", "icmp:", "icmp:a b", "icmp:board\n", "udp:board", "udp:board:0", "udp:board:65536", "udp::7",
    "eth:eth1", "eth:eth1,02:00:00:00:00", "eth:eth1,02:00:00:00:00:0g", "eth:eth1,02:00:00:00:00:01,88b5",
    "eth:a-name-too-long-x,02:00:00:00:00:01", "ethercat:", "ethercat:a,b", "loop:pipe",
]  # fmt: skip


@pytest.mark.parametrize("path", GOOD)
def test_a_path_stays_as_it_is_written(path: str) -> None:
    assert normalise(PROBE, {"path": path}, "x").path == path
    assert normalise(PROBE, {"peer": path}, "x").path == path


@pytest.mark.parametrize("path", WRONG)
def test_what_is_no_path_is_one_line(path: str) -> None:
    with pytest.raises(InputError, match="path") as error:
        normalise(PROBE, {"path": path}, "plan x, step 1")
    assert "\n" not in str(error.value)


@given(
    st.text(max_size=40)
    | st.tuples(st.sampled_from(["icmp", "udp", "eth", "ethercat"]), st.text(max_size=40)).map(":".join)
)
def test_any_text_is_a_path_or_refused(text: str) -> None:
    try:
        assert check_far_end(text) == text
    except ValueError as error:
        assert str(error)
    else:
        assert far_end_words(text)


def test_a_peer_is_short_for_its_path() -> None:
    assert path_to("board") == "icmp:board"
    assert path_to("udp:board:7") == "udp:board:7"
    parameters = normalise(PROBE, {"peer": "board"}, "x")
    assert parameters.path == "icmp:board"
    assert "peer" not in parameters.values
    with pytest.raises(InputError, match="path or peer"):
        normalise(PROBE, {"peer": "board", "path": "icmp:board"}, "x")


def test_names_are_resolved_here_and_addresses_stay() -> None:
    for path in ("icmp:10.1.2.3", "udp:10.1.2.3:7", "udp:[fe80::1%eth0]:7", "ethercat:eth1"):
        assert resolved(path) == path
    assert resolved("icmp:[::1]") == "icmp:::1"
    assert resolved("icmp:localhost") in ("icmp:127.0.0.1", "icmp:::1")
    assert resolved("udp:localhost:7") in ("udp:127.0.0.1:7", "udp:[::1]:7")
    with pytest.raises(MeasureError, match=r"cannot find the address of the host no-such-host\.invalid"):
        resolved("icmp:no-such-host.invalid")


def test_the_engine_gets_its_options() -> None:
    parameters = normalise(PROBE, {"peer": "10.0.0.1", "count": 5, "busy-poll": 50, "receive": "poll"}, "x")
    arguments = PROBE.arguments(parameters, None)
    assert arguments[0] == "path"
    expected = {
        "--path=icmp:10.0.0.1",
        "--count=5",
        "--busy-poll-us=50",
        "--receive=poll",
        "--interval-ns=1000000",
    }
    assert expected <= set(arguments)
    assert not any(word.startswith(("--duration", "--peer", "--explain")) for word in arguments)
    assert PROBE.expected_ns(parameters) == 5 * 1_000_000 + parameters.warm_up_ns
    explained = normalise(PROBE, {"peer": "10.0.0.1", "explain": True}, "x")
    assert any(word.startswith("--explain-instance") for word in PROBE.arguments(explained, None))
    assert not any(word.startswith("--explain") for word in PROBE.trial_arguments(explained))


def test_nothing_names_the_far_end() -> None:
    """A preset has no far end until somebody gives it one."""
    parameters = normalise(PROBE, {}, "x")
    assert PROBE.peer(parameters) is None
    with pytest.raises(InputError, match="name the far end: --peer HOST"):
        PROBE.arguments(parameters, None)


def test_the_time_of_a_device_does_not_look_like_throttling() -> None:
    response = PROBE.metric("response")
    assert response is not None
    assert not response.is_delay


def test_parameters_that_do_not_fit() -> None:
    for written, expected_text in (
        ({"interval": "19us"}, "interval"),
        ({"interval": "50us", "timeout": "10s"}, "timeout"),
        ({"interval": "2ms", "timeout": "1ms"}, "timeout"),
        ({"count": 5, "duration": "1s"}, "duration or count"),
        ({"size": 1473}, "size"),
        ({"explain-above": "1ms"}, "explain"),
    ):
        with pytest.raises(InputError, match=expected_text):
            normalise(PROBE, written, "x")
