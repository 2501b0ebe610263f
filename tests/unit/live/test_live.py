# SPDX-License-Identifier: MIT
"""The live page's documents, and who may read them."""

from __future__ import annotations

import http.client
import json
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from rtgauge.cli.live import with_addresses
from rtgauge.errors import InputError
from rtgauge.live.live_server import Address, LiveServer, parse_address
from rtgauge.live.live_state import MOST_MAXIMA, LiveState
from rtgauge.record.histogram import bin_of
from rtgauge.record.model import LeftOut, StepKey
from rtgauge.record.stream import SeriesLine, Window

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOPBACK = Address("127.0.0.1", 0)


def key(load: str) -> StepKey:
    return StepKey(probe="wakeup", parameters={}, load=load, deployment="as-is", targets={"self": "local"}, repeat=1)


def window(series: int, index: int, *values_ns: int, phase: str = "measure") -> Window:
    bins: dict[int, int] = {}
    for value in values_ns:
        bins[int(bin_of(value))] = bins.get(int(bin_of(value)), 0) + 1
    return Window(
        type="window", series=series, phase=phase, index=index, start_ns=index * 10**9, end_ns=(index + 1) * 10**9, count=len(values_ns), missed=index,
        min_ns=min(values_ns), max_ns=max(values_ns), sum_ns=sum(values_ns), m2_ns2=0.0, bins=sorted(bins.items()), missed_bins=[],
    )  # fmt: skip


@pytest.fixture(name="state")
def a_run() -> LiveState:
    state = LiveState(lambda key: key.load)
    state.run_begins([key("idle"), key("cpu")], [10.0, 10.0])
    state.step_begins(0, key("idle"))
    state.series([SeriesLine(type="series", series=0, metric="latency", unit="ns", labels={"cpu": 3})])
    return state


def document(state: LiveState) -> dict:
    return json.loads(state.document())


def test_windows_become_columns_figures_and_a_course(state):
    state.window(window(0, 0, 1_500, 90_000, phase="warm-up"))
    state.window(window(0, 0, 1_500, 1_501, 30_000))
    state.window(window(0, 1, 1_500, 2_000_000))
    shown = document(state)
    assert shown["series"] == [{"name": "CPU 3", "count": 5, "missed": 1, "min_ns": 1_500, "max_ns": 2_000_000}]
    assert sum(shown["histogram"]["counts"]) == 5
    assert shown["histogram"]["edges_ns"][0] <= 1_500
    assert shown["maxima"] == [[0, 30_000], [1, 2_000_000]]
    # Nothing is counted twice.
    assert sum(document(state)["histogram"]["counts"]) == 5


def test_each_step_begins_anew(state):
    state.window(window(0, 0, 1_500))
    state.step_begins(1, key("cpu"))
    state.left_out(LeftOut(what="cross-check", reason="not installed", remedy="install it"))
    shown = document(state)
    assert (shown["number"], shown["series"], shown["histogram"]["counts"], shown["maxima"]) == (1, [], [], [])
    assert shown["left_out"] == ["cross-check: not installed"]
    assert 0 < shown["left_s"] <= 10
    state.run_ends()
    assert document(state)["left_s"] == 0


@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 10**10)), max_size=30))
def test_the_largest_of_all_is_in_the_course(windows):
    state = LiveState(lambda key: key.load)
    state.run_begins([key("idle")], [1.0])
    state.step_begins(0, key("idle"))
    for index, value in windows:
        state.window(window(0, index, value))
    shown = document(state)["maxima"]
    assert max((value for _, value in shown), default=None) == max((value for _, value in windows), default=None)


def test_a_long_course_keeps_its_maxima_in_bounded_room(state):
    for index in range(5 * MOST_MAXIMA):
        state.window(window(0, index, 1_000 + index))
        state.window(window(1, index, 500))
    shown = document(state)["maxima"]
    assert len(shown) <= MOST_MAXIMA
    assert shown[-1][1] == 1_000 + 5 * MOST_MAXIMA - 1
    assert [second for second, _ in shown] == sorted({second for second, _ in shown})


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("", "127.0.0.1", 8377),
        ("9000", "127.0.0.1", 9000),
        ("10.0.0.7:1", "10.0.0.7", 1),
        ("[::1]:5", "::1", 5),
        ("::1", "::1", 8377),
        ("localhost:0", "localhost", 0),
    ],
)
def test_addresses(text, host, port):
    assert parse_address(text) == Address(host, port)


@pytest.mark.parametrize("text", ["nowhere", "1.2.3:80", "1.2.3.4:x", "1.2.3.4:70000", "[::1", "-1", "1.2.3.4:-1"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(InputError, match="ADDRESS:PORT"):
        parse_address(text)


def test_an_address_may_follow_the_option_and_a_plan_too():
    assert with_addresses(["run", "--live", "quick"]) == ["run", "--live", "quick"]
    assert with_addresses(["run", "--live", "0.0.0.0:80", "quick"]) == ["run", "--live-at", "0.0.0.0:80", "quick"]
    assert with_addresses(["run", "--live", "8080"]) == ["run", "--live-at", "8080"]
    assert with_addresses(["run", "--live"]) == ["run", "--live"]


def get(url: str, **headers: str) -> tuple[int, str]:
    """Status and body."""
    address, path = url.removeprefix("http://").split("/", 1)
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", f"/{path}", headers=headers)
    answer = connection.getresponse()
    with closing(connection):
        return answer.status, answer.read().decode()


def documents(url: str, **options: object) -> Iterator[dict]:
    """What the server sends to a browser at this address, until it closes."""
    address = url.replace("http://", "ws://").partition("?")
    with connect(f"{address[0]}live{address[1]}{address[2]}", open_timeout=60, **options) as socket, suppress(ConnectionClosed):
        for message in socket:
            yield json.loads(message)


def test_several_browsers_follow_and_get_the_end(state):
    with LiveServer(state, LOOPBACK) as server:
        status, page = get(server.url)
        assert status == 200
        assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in page
        first, second = documents(server.url), documents(server.url)
        assert next(first)["series"] == next(second)["series"] == []
        state.window(window(0, 0, 1_500))
        assert next(first)["series"] == next(second)["series"] != []
        state.run_ends()
        *_, last = first
        assert last["ended"]
        *_, last = second
        assert last["ended"]


def test_a_page_from_elsewhere_gets_nothing(state):
    with LiveServer(state, LOOPBACK) as server:
        assert get(server.url, Host="evil.example")[0] == 403
        with pytest.raises(InvalidStatus):
            next(documents(server.url, origin="http://evil.example"))


def test_other_addresses_need_the_token(state):
    with LiveServer(state, parse_address("0.0.0.0:0")) as server:
        local = server.url.replace(server.url.split("/")[2].rsplit(":", 1)[0], "127.0.0.1")
        assert "?token=" in local
        bare, token = local.split("?token=")
        assert len(token) >= 20
        assert get(bare)[0] == 403
        assert get(f"{bare}?token={token[:-1]}")[0] == 403
        assert get(local)[0] == 200
        with pytest.raises(InvalidStatus):
            next(documents(bare))
        assert next(documents(local))["ended"] is False


def test_a_taken_address_is_said_and_the_port_is_free_afterwards(state):
    with LiveServer(state, LOOPBACK) as server:
        port = int(server.url.rsplit(":", 1)[1].strip("/"))
        with pytest.raises(InputError, match="cannot be listened on"), LiveServer(state, Address("127.0.0.1", port)):
            pass
    with LiveServer(state, Address("127.0.0.1", port)):
        pass
