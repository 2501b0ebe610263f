# SPDX-License-Identifier: MIT
"""The live page's documents, and who may read them."""

from __future__ import annotations

import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from rtgauge.cli.arguments import rewritten
from rtgauge.errors import InputError, RecordError
from rtgauge.record.histogram import bin_of, encode, encode_bins
from rtgauge.record.model import LeftOut, StepKey
from rtgauge.record.stream import Frame, SeriesLine, Window
from rtgauge_ext.live.live_progress import required_of
from rtgauge_ext.live.live_server import Address, LiveServer, parse_address
from rtgauge_ext.live.live_state import MOST_MAXIMA, LiveState, Moving
from rtgauge_ext.live.page_process import MOST_CONNECTIONS, MOST_MESSAGE_BYTES, MOST_UNREAD
from rtgauge_ext.tire.motion import frame_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOOPBACK = Address("127.0.0.1", 0)


def key(load: str) -> StepKey:
    return StepKey(
        probe="wakeup", parameters={}, load=load, deployment="as-is", targets={"self": "local"}, repeat=1
    )


def window(series: int, index: int, *values_ns: int, phase: str = "measure") -> Window:
    bins: dict[int, int] = {}
    for value in values_ns:
        bins[int(bin_of(value))] = bins.get(int(bin_of(value)), 0) + 1
    return Window(
        type="window", series=series, phase=phase, index=index, start_ns=index * 10**9,
        end_ns=(index + 1) * 10**9, count=len(values_ns), missed=index,
        min_ns=min(values_ns), max_ns=max(values_ns), sum_ns=sum(values_ns), m2_ns2=0.0,
        bins=encode_bins(np.array(sorted(bins)), np.array([bins[at] for at in sorted(bins)])), missed_bins="",
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
    assert shown["series"] == [
        {"name": "CPU 3", "unit": "ns", "count": 5, "missed": 1, "min_ns": 1_500, "max_ns": 2_000_000}
    ]
    assert sum(shown["histogram"]["counts"]) == 5
    assert shown["histogram"]["edges_ns"][0] <= 1_500
    assert shown["maxima"] == [[0, 30_000], [1, 2_000_000]]
    # Nothing is counted twice.
    assert sum(document(state)["histogram"]["counts"]) == 5


def test_only_the_first_metric_is_drawn(state):
    lines = [("latency", 0), ("latency", 1), ("response", 1)]
    state.series(
        [
            SeriesLine(type="series", series=at, metric=metric, unit="ns", labels={"cpu": cpu})
            for at, (metric, cpu) in enumerate(lines)
        ]
    )
    for series, value in enumerate((1_500, 2_000, 5_000_000)):
        state.window(window(series, 0, value))
    shown = document(state)
    assert [series["name"] for series in shown["series"]] == [
        "latency, CPU 0",
        "latency, CPU 1",
        "response, CPU 1",
    ]
    assert (shown["metric"], sum(shown["histogram"]["counts"]), shown["maxima"]) == (
        "latency",
        2,
        [[0, 2_000]],
    )


def test_what_was_late_so_far_is_counted_against_the_requirement():
    required = required_of("latency<=20us hardness=99%")
    state = LiveState(lambda key: key.load, required=required)
    state.run_begins([key("idle"), key("cpu")], [10.0, 10.0])
    state.step_begins(0, key("idle"))
    state.series(
        [
            SeriesLine(type="series", series=at, metric=metric, unit="ns", labels={"cpu": 0})
            for at, metric in enumerate(("latency", "response"))
        ]
    )
    state.window(window(0, 0, 1_500, 30_000, phase="warm-up"))
    state.window(window(0, 0, 1_500, 1_501, 30_000))
    state.window(window(0, 1, 1_500, 2_000_000))
    state.window(window(1, 1, 5_000_000))
    late = {"metric": "latency", "bound_ns": 20_000, "late": 3, "activations": 6}
    assert document(state)["required"] == {
        "text": "latency<=20us hardness=99%",
        "allowed": 0.01,
        "counted": [late],  # the second window misses one activation, which counts
    }
    state.step_begins(1, key("cpu"))
    assert document(state)["required"]["counted"] == []
    assert document(LiveState(lambda key: key.load))["required"] is None


def test_each_step_begins_anew(state):
    state.window(window(0, 0, 1_500))
    state.step_begins(1, key("cpu"))
    state.left_out(LeftOut(what="cross-check", reason="not installed", remedy="install it"))
    shown = document(state)
    assert (shown["number"], shown["series"], shown["histogram"]["counts"], shown["maxima"]) == (
        1,
        [],
        [],
        [],
    )
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
    assert max((value for _, value in shown), default=None) == max(
        (value for _, value in windows), default=None
    )


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


@pytest.mark.parametrize(
    "text", ["nowhere", "1.2.3:80", "1.2.3.4:x", "1.2.3.4:70000", "[::1", "-1", "1.2.3.4:-1"]
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(InputError, match="ADDRESS:PORT"):
        parse_address(text)


def test_an_address_may_follow_the_option_and_a_plan_too():
    assert rewritten(["run", "--live", "quick"]) == ["run", "--live=", "quick"]
    assert rewritten(["run", "--live", "0.0.0.0:80", "quick"]) == ["run", "--live=0.0.0.0:80", "quick"]
    assert rewritten(["run", "--live", "8080"]) == ["run", "--live=8080"]
    assert rewritten(["run", "--live"]) == ["run", "--live="]
    assert rewritten(["run", "--live", "plans/quick.toml"]) == ["run", "--live=", "plans/quick.toml"]
    assert rewritten(["run", "--live", "myhost:80x"]) == ["run", "--live=myhost:80x"]
    assert rewritten(["run", "--live=[::]:0", "quick"]) == ["run", "--live=[::]:0", "quick"]


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
    with (
        connect(f"{address[0]}live{address[1]}{address[2]}", open_timeout=60, **options) as socket,
        suppress(ConnectionClosed),
    ):
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
        # The first browser may get another document before the window.
        shown = [next(each["series"] for each in browser if each["series"]) for browser in (first, second)]
        assert shown[0] == shown[1]
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
        local = server.url.replace(server.url.split("/")[2].rsplit(":", 1)[0], "127.0.0.1", 1)
        assert "?token=" in local
        bare, token = local.split("?token=")
        assert len(token) >= 20
        assert get(bare)[0] == 403
        assert get(f"{bare}?token={token[:-1]}")[0] == 403
        assert get(local)[0] == 200
        with pytest.raises(InvalidStatus):
            next(documents(bare))
        assert next(documents(local))["ended"] is False


def test_a_taken_address_is_reported_and_the_port_freed(state):
    with LiveServer(state, LOOPBACK) as server:
        port = int(server.url.rsplit(":", 1)[1].strip("/"))
        with (
            pytest.raises(InputError, match=r"cannot be used .*--live 0"),
            LiveServer(state, Address("127.0.0.1", port)),
        ):
            pass
    with LiveServer(state, Address("127.0.0.1", port)):
        pass


def frame(step: int, *positions: tuple[int, int]) -> Frame:
    """With positions in units of 0.5 m."""
    differences = np.diff(np.array(positions), axis=0, prepend=[(0, 0)]).ravel().tolist()
    return Frame(
        type="frame", step=step, time_ns=step * 10**7, every=3, copy_ns=1500, dropped=2, late=1, unit_m=0.5,
        positions=encode(differences)
    )  # fmt: skip


def read_message(message: bytes) -> tuple[list[float], list[list[float]]]:
    """Its nine numbers and the positions in m."""
    head = np.frombuffer(message[:72], "<f8")
    return head.tolist(), (np.frombuffer(message[72:], "<f4").reshape(-1, 2) + head[7:9]).tolist()


def test_a_frame_is_binary_for_a_browser():
    head, positions = read_message(frame_message(7, frame(4, (2, 4), (-2, 4), (1000, -8))))
    assert head[:7] == [7, 4, 0.04, 3, 1.5, 2, 1]
    assert np.allclose(positions, [[1, 2], [-1, 2], [500, -4]])


@given(st.text("ABCDwxyz0189+/", max_size=40))
def test_any_text_of_positions_is_a_frame_or_refused(text):
    with suppress(RecordError):
        assert len(frame_message(1, Frame(**frame(1, (0, 0)).model_dump() | {"positions": text}))) % 8 == 0


@pytest.mark.parametrize("wrong", [{"step": 0}, {"every": "1"}, {"unit_m": 0.0}, {"positions": "-"}])
def test_a_frame_of_something_else_is_refused(wrong):
    with pytest.raises(RecordError, match="not a frame of a tire"):
        frame_message(1, Frame(**frame(1, (0, 0)).model_dump() | wrong))


@pytest.fixture(name="moving")
def a_tire() -> LiveState:
    state = LiveState(
        lambda key: key.load, lambda key: Moving("tire", frame_message, elsewhere=key.load != "idle")
    )
    state.run_begins([key("idle"), key("cpu")], [10.0, 10.0])
    return state


def watch(url: str) -> ClientConnection:
    return connect(
        url.replace("http://", "ws://").replace("/?", "/frames?").removesuffix("/")
        + ("" if "?" in url else "/frames"),
        open_timeout=60,
    )


def wait_for(condition: Callable[[], bool]) -> None:
    """Until it is true; the bound is for a test that hangs."""
    for _ in range(60_000):
        if condition():
            return
        time.sleep(0.001)
    pytest.fail("it did not come true")


def test_frames_are_made_only_while_a_browser_watches(moving):
    with LiveServer(moving, LOOPBACK) as server:
        assert not moving.watched()
        with watch(server.url):
            wait_for(lambda: moving.watchers == 1)
            assert not moving.watched(), "no step yet"
            moving.step_begins(0, key("idle"))
            assert moving.watched()
            assert document(moving)["motion"] == "shown"
            with watch(server.url):
                wait_for(lambda: moving.watchers == 2)
            moving.step_begins(1, key("cpu"))
            assert not moving.watched()
            assert document(moving)["motion"] == "elsewhere"
        wait_for(lambda: moving.watchers == 0)
        moving.step_begins(0, key("idle"))
        assert not moving.watched()


def test_each_browser_gets_the_newest_frame_if_it_answers(moving):
    moving.step_begins(0, key("idle"))
    with LiveServer(moving, LOOPBACK) as server, watch(server.url) as quick, watch(server.url) as slow:
        wait_for(lambda: moving.watchers == 2)
        for step in range(1, 21):
            moving.frame(frame(step, (step, 0)))
            head, positions = read_message(quick.recv(60))
            assert (head[0], head[1], positions) == (step, step, [[step / 2, 0]])
            quick.send("")
        # What the slow one did not answer holds up nothing but itself.
        first = [read_message(slow.recv(60))[0][0] for _ in range(MOST_UNREAD)]
        assert first == sorted(set(first))
        with pytest.raises(TimeoutError):
            slow.recv(0.2)
        slow.send("")
        wait_for_frame = read_message(slow.recv(60))[0]
        assert wait_for_frame[0] == 20


def test_frames_need_the_token_too(moving):
    with LiveServer(moving, parse_address("0.0.0.0:0")) as server:
        local = server.url.replace(server.url.split("/")[2].rsplit(":", 1)[0], "127.0.0.1", 1)
        with pytest.raises(InvalidStatus):
            watch(local.partition("?")[0])
        with watch(local):
            wait_for(lambda: moving.watchers == 1)


def has(process: int) -> tuple[int, int]:
    """Its descriptors and its memory (bytes)."""
    status = Path(f"/proc/{process}/status").read_text()
    return len(list(Path(f"/proc/{process}/fd").iterdir())), int(
        re.search(r"VmRSS:\s+([0-9]+) kB", status)[1]
    ) << 10


@pytest.fixture
def few_descriptors_for_others() -> Iterator[None]:
    """Processes that are started have 1,024 descriptors, this one, which connects, more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("address", ["127.0.0.1:0", "0.0.0.0:0"])
@pytest.mark.parametrize(
    "begun", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "], ids=["silent", "slow"]
)
def test_two_thousand_connections_take_nothing_from_the_run(
    state, few_descriptors_for_others, address, begun
):
    with LiveServer(state, parse_address(address)) as server:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
        page, own = server.process.pid, has(os.getpid())[0]
        descriptors, memory = has(page)
        port = int(server.url.split("/")[2].rsplit(":", 1)[1])
        with ExitStack() as stack:
            for number in range(2_000):
                client = stack.enter_context(closing(socket.socket()))
                client.setblocking(False)
                client.connect_ex(("127.0.0.1", port))  # many wait in the kernel
                with suppress(OSError):
                    client.send(begun)
                if number % 100 == 99:
                    assert has(page)[0] < descriptors + 2 * MOST_CONNECTIONS
            assert has(page)[1] < memory + (64 << 20)
            assert has(os.getpid())[0] <= own + 2_000, "they are all of this test"


def test_a_page_that_is_held_up_or_ends_holds_up_no_run(state):
    """Whatever is done to its process: nothing waits for it."""
    with LiveServer(state, LOOPBACK) as server:
        shown = documents(server.url)
        next(shown)
        os.kill(server.process.pid, signal.SIGSTOP)
        for index in range(3 * MOST_MAXIMA):
            state.window(window(0, index, 1_500))
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        state.window(window(0, 3 * MOST_MAXIMA, 1_500))
    assert document(state)["series"][0]["count"] == 3 * MOST_MAXIMA + 1


def test_the_page_ends_with_a_run_that_is_killed():
    code = (
        "import os; from types import SimpleNamespace as State; from rtgauge_ext.live.live_server "
        "import Address, LiveServer\n"
        "print(LiveServer(State(ended=False), Address('127.0.0.1', 0)).__enter__().process.pid, "
        "flush=True); os.kill(os.getpid(), 9)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        page = int(run.communicate()[0])
    wait_for(lambda: not Path(f"/proc/{page}").exists())


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET / HTTP/1.1\r\nX-Slow: ",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nx",
    ],
)
def test_a_connection_that_becomes_no_page_is_closed(state, begun):
    with (
        LiveServer(state, LOOPBACK, request_s=0.2) as server,
        socket.create_connection(("127.0.0.1", int(server.url.split(":")[2].strip("/"))), timeout=60) as slow,
    ):
        slow.sendall(begun)
        with suppress(ConnectionResetError):
            while slow.recv(1 << 16):
                pass
        # A page that was asked for in time goes on.
        shown = documents(server.url)
        assert next(shown)["ended"] is False
        time.sleep(0.3)
        state.window(window(0, 0, 1_500))
        assert any(document["series"] for document in shown)


def test_a_place_is_free_again_after_each_connection(state):
    with LiveServer(state, LOOPBACK) as server:
        for _ in range(MOST_CONNECTIONS + 10):
            assert get(server.url)[0] == 200


@pytest.mark.parametrize(
    "sent",
    ["x" * (MOST_MESSAGE_BYTES + 1), [b"x" * 1000] * 100],
    ids=["a large message", "one in many parts"],
)
def test_a_browser_that_sends_much_is_closed(moving, sent):
    with LiveServer(moving, LOOPBACK) as server, watch(server.url) as browser:
        with pytest.raises(ConnectionClosed):
            browser.send(sent)
            while True:
                browser.recv(60)
        assert get(server.url)[0] == 200


@pytest.mark.parametrize("path", ["/live", "/frames"])
@pytest.mark.parametrize(
    "sent", [b"\x81\x80\0\0\0\0", b"\x89\xfd\0\0\0\0" + b"x" * 125], ids=["texts", "pings"]
)
def test_a_flood_of_small_messages_is_cut_off(moving, path, sent):
    """Empty texts fill the queue of the page's process; pings fill the answers that nobody reads."""
    with LiveServer(moving, LOOPBACK) as server:
        port = int(server.url.rsplit(":", 1)[1].strip("/"))
        with socket.create_connection(("127.0.0.1", port), timeout=60) as flood:
            flood.sendall(
                f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
                "Sec-WebSocket-Version: 13\r\n\r\n".encode()
            )
            assert flood.recv(100).startswith(b"HTTP/1.1 101 ")
            _, memory = has(server.process.pid)
            with pytest.raises(OSError, match=r"reset|pipe"):
                while True:
                    flood.sendall(sent * 10_000)
        assert has(server.process.pid)[1] < memory + (64 << 20)
        assert get(server.url)[0] == 200
