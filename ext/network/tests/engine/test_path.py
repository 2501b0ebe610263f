# SPDX-License-Identifier: MIT
"""path: every cycle ends in one way, the parts add up, nothing from elsewhere counts, and what this machine
was late with is not the far end's.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engine.stream import POLICY, Live, Stream, refused, run
from tests.support.cli import wait_until

from ext.network.tests.two_namespaces import (
    FAR,
    FAR_MAC,
    LINK,
    FarEnd,
    TwoNamespaces,
    clocked_device,
    packet_far_end,
    udp_far_end,
)

pytestmark = [pytest.mark.engine, pytest.mark.root]
OUTCOMES = ("answered", "late", "lost", "sent-late", "read-late", "not-sent")
OWN = OUTCOMES[3:]
PATIENT = "--timeout-ns=5000000000"


@pytest.fixture(scope="module")
def both() -> Iterator[TwoNamespaces]:
    with TwoNamespaces() as made:
        yield made


def path(engine: Path, both: TwoNamespaces, *words: str) -> Stream:
    options = ("path", "--go", f"--policy={POLICY}", "--warm-up-ns=0", PATIENT, *words)
    return run(engine, *options, prefix=both.near)


def counts(stream: Stream, cycles: int) -> dict[str, Any]:
    """The counts, which agree with the summary and with each other."""
    (values,) = [line["values"] for line in stream.all("result") if line["name"] == "path"]
    summary = stream.all("summary")[0]
    assert sum(values[outcome] for outcome in OUTCOMES) == values["cycles"] == cycles
    assert summary["count"] + summary["missed"] == cycles
    assert summary["missed"] >= values["lost"]
    assert summary["impossible"] == 0
    assert values["split"] + values["not-split"] == summary["count"]
    return values


def test_the_parts_of_each_cycle_add_up(engine: Path, both: TwoNamespaces, tmp_path: Path) -> None:
    folder = tmp_path / "samples"
    folder.mkdir()
    stream = path(engine, both, f"--path=icmp:{FAR}", "--count=300", f"--samples-dir={folder}")
    assert (stream.reason, stream.status) == ("count", 0)
    values = counts(stream, 300)
    assert values["interface"] == LINK
    assert values["lost"] == values["foreign"] == values["duplicate"] == values["not-split"] == 0
    labels = [series["labels"].get("segment") for series in stream.all("series")]
    assert labels == [None, "wake-up", "send", "wire-and-device", "receive", None]
    sums = [summary["sum_ns"] for summary in stream.all("summary")]
    counted = [summary["count"] for summary in stream.all("summary")]
    if not values["not-sent"]:
        assert counted == [300] * 5 + [299]
    assert sums[0] == sum(sums[1:5])


@pytest.mark.parametrize("receive", ["block", "poll"])
def test_what_other_frames_there_are(engine: Path, both: TwoNamespaces, receive: str) -> None:
    """Of each ten frames, the far end drops one, answers one twice, one with a foreign frame before, and one
    only behind the answer to the next.
    """
    held: list[bytes] = []

    def react(number: int, data: bytes) -> Sequence[bytes]:
        match number % 10:
            case 1:
                return []
            case 3:
                return [data, data]
            case 5:
                return [b"something else", bytes(8) + data[8:], data]
            case 7:
                held.append(data)
                return []
            case 8:
                return [data, held.pop()]
            case _:
                return [data]

    end, where = udp_far_end(both, react)
    with end:
        words = (f"--path={where}", "--interval-ns=20000000", "--count=41", f"--receive={receive}")
        values = counts(path(engine, both, *words), 41)
    assert end.seen == 41 - values["not-sent"]
    if end.seen == 41:
        assert values["lost"] == 4
        assert (values["duplicate"], values["reordered"], values["foreign"]) == (4, 4, 8)
        assert values["late"] + values["sent-late"] + values["read-late"] >= 4


def documented_far_ends() -> dict[str, list[str]]:
    """The programs that the page gives as far ends, by their first word. Both use port 7007."""
    page = (Path(__file__).parents[2] / "README.md").read_text().splitlines()
    (command,) = [line.split() for line in page if line.startswith("    socat ")]
    begin = page.index("    import socket")
    script = "\n".join(line[4:] for line in page[begin : begin + 6])
    return {"socat": command, "python": [sys.executable, "-c", script]}


@pytest.mark.parametrize("name", ["socat", "python"])
def test_an_echo_of_any_make(name: str, engine: Path, both: TwoNamespaces) -> None:
    """As the page gives it. Many datagrams at once: none is joined with another one."""
    assert shutil.which("socat"), "socat is missing: sh tools/packages.sh test"

    def listens() -> bool:
        table = subprocess.run(
            [*both.far, "cat", "/proc/net/udp"], capture_output=True, text=True, check=True
        )
        return f":{7007:04X} " in table.stdout

    # with its children, which socat makes for the sender
    with subprocess.Popen([*both.far, *documented_far_ends()[name]], start_new_session=True) as program:
        try:
            wait_until(listens, f"{name} to listen")
            words = (f"--path=udp:{FAR}:7007", "--interval-ns=200000", "--count=2000")
            values = counts(path(engine, both, *words), 2000)
        finally:
            os.killpg(program.pid, signal.SIGKILL)
    assert values["lost"] == values["foreign"] == values["duplicate"] == 0


def test_a_far_end_that_is_always_late_is_there(engine: Path, both: TwoNamespaces) -> None:
    """It answers each frame when the next one comes, for longer than a far end is waited for."""
    held: list[bytes] = []

    def react(_number: int, data: bytes) -> Sequence[bytes]:
        held.append(data)
        return held[-2:-1]

    end, where = udp_far_end(both, react)
    options = ("path", "--go", f"--policy={POLICY}", "--warm-up-ns=0", "--timeout-ns=1000000000")
    with end:
        words = (f"--path={where}", "--interval-ns=20000000", "--count=110")
        stream = run(engine, *options, *words, prefix=both.near)
    assert stream.reason == "count"
    values = counts(stream, 110)
    assert values["answered"] == 0
    assert values["late"] > 0


def test_a_device_with_a_clock_of_its_own(engine: Path, both: TwoNamespaces) -> None:
    """Its period is 0.15 % longer than the cycle. What slipped, its own log says."""
    device, where = clocked_device(both, 5_007_500)
    with device:
        stream = path(engine, both, f"--path={where}", "--interval-ns=5000000", "--count=1200")
    (clock,) = [line["values"] for line in stream.all("result") if line["name"] == "device-clock"]
    assert clock["period-ns"] == pytest.approx(5_007_500, rel=1e-4)
    ahead = [cycle - number for cycle, number in device.log]
    assert abs(clock["slips"] - abs(ahead[-1] - ahead[0])) <= 1
    assert abs(clock["beats"] - 1200 * 0.0015) < 0.2
    listed = [line["values"]["cycle"] for line in stream.all("result") if line["name"] == "slip"]
    assert len(listed) == clock["slips"]
    assert listed == sorted(listed)
    parts = [line["values"] for line in stream.all("result") if line["name"] == "beat"]
    assert sum(part["cycles"] for part in parts) == clock["cycles"]


def test_a_device_without_a_clock(engine: Path, both: TwoNamespaces) -> None:
    stream = path(engine, both, f"--path=icmp:{FAR}", "--count=500")
    assert not [line for line in stream.all("result") if line["name"] in ("device-clock", "slip")]


def test_a_loop_that_is_stopped_does_not_blame_the_far_end(engine: Path, both: TwoNamespaces) -> None:
    words = (
        f"--path=icmp:{FAR}",
        f"--policy={POLICY}",
        "--interval-ns=50000000",
        "--count=20",
        "--warm-up-ns=0",
    )
    program, *before = both.near
    with Live(Path(program), *before, str(engine), "path", PATIENT, *words) as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("started")
        live.process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)  # ten releases pass
        live.process.send_signal(signal.SIGCONT)
        stream = live.finish()
    values = counts(stream, 20)
    assert values["lost"] == 0
    assert sum(values[outcome] for outcome in OWN) >= 7
    assert "own-late" in stream.marks


def test_frames_without_ip(engine: Path, both: TwoNamespaces) -> None:
    with packet_far_end(both, 0x88B5, lambda _number, data: [data]):
        values = counts(path(engine, both, f"--path=eth:{LINK},{FAR_MAC}", "--count=50"), 50)
    assert values["lost"] == values["foreign"] == 0
    assert values["frame-bytes"] == 46


def test_the_broadcast_read_of_ethercat(engine: Path, both: TwoNamespaces) -> None:
    """A frame that no slave has seen is no answer. Every fifth frame comes back twice, and in every seventh,
    the last of three slaves is missing.
    """

    def react(number: int, data: bytes) -> Sequence[bytes]:
        answer = through_slaves(data, 2 if number % 7 == 6 else 3)
        return [data, answer] if number % 5 == 0 else [answer]

    with packet_far_end(both, 0x88A4, react) as end:
        values = counts(path(engine, both, f"--path=ethercat:{LINK}", "--count=50"), 50)
    assert values["lost"] == 0
    if end.seen > 7:
        assert (values["slaves-least"], values["slaves-most"]) == (2, 3)
    if not values["not-sent"]:
        assert values["foreign"] == 10


def through_slaves(data: bytes, slaves: int) -> bytes:
    """What a chain of slaves returns (ETG.1000.4): each increments the address of a broadcast read, ORs its
    register into the data and increments the working counter. It leaves other datagrams alone.
    """
    frame = bytearray(data)
    length_and_type, at = int.from_bytes(frame[:2], "little"), 2
    assert length_and_type >> 12 == 1
    more = True
    while more:
        command, length = frame[at], int.from_bytes(frame[at + 6 : at + 8], "little")
        more, counter = bool(length & 0x8000), at + 10 + (length & 0x7FF)
        for slave in range(slaves if command == 7 else 0):
            for place, step in ((at + 2, 1), (counter, 1)):
                value = int.from_bytes(frame[place : place + 2], "little") + step
                frame[place : place + 2] = value.to_bytes(2, "little")
            frame[at + 10] |= 0x10 | slave
        at = counter + 2
    assert at - 2 == length_and_type & 0x7FF
    return bytes(frame)


@pytest.mark.parametrize(
    ("mtu", "words"), [("100", "give a smaller --size"), (None, "check that the interface is up")]
)
def test_an_interface_that_takes_no_frame(engine: Path, mtu: str | None, words: str) -> None:
    change = ["down"] if mtu is None else ["mtu", mtu]
    with TwoNamespaces() as both:
        subprocess.run([*both.near, "ip", "link", "set", LINK, *change], check=True)
        options = ("path", "--go", f"--policy={POLICY}", "--count=20", "--size=1000")
        message = refused(engine, "path", 3, *options, f"--path=eth:{LINK},{FAR_MAC}", prefix=both.near)
    assert f"cannot send on eth:{LINK},{FAR_MAC}" in message
    assert words in message


def test_an_interface_that_goes_down_in_the_middle(engine: Path) -> None:
    """Each cycle counts once, and the far end is not blamed."""
    with TwoNamespaces() as both:
        end = both.far_socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x88B5))
        end.bind(("rtg-far", 0x88B5))

        def react(number: int, data: bytes) -> Sequence[bytes]:
            if number == 20:
                subprocess.run([*both.near, "ip", "link", "set", LINK, "down"], check=True)
            return [data] if number < 20 else []

        with FarEnd(end, react):
            words = (f"--path=eth:{LINK},{FAR_MAC}", "--interval-ns=10000000", "--timeout-ns=100000000")
            options = ("path", "--go", f"--policy={POLICY}", "--warm-up-ns=0", "--count=100", *words)
            stream = run(engine, *options, prefix=both.near)
    values = counts(stream, 100)
    assert values["not-sent"] > 0
    assert "own-late" in stream.marks
    assert "Network is down" in str(stream.all("mark"))


def test_nobody_there(engine: Path, both: TwoNamespaces) -> None:
    options = ("path", "--go", f"--policy={POLICY}", f"--path=udp:{FAR}:9")
    for length in ((), ("--count=100", "--interval-ns=10000000")):
        message = refused(engine, "no-answer", 3, *options, *length, prefix=both.near)
        assert "nobody answers on udp:198.18.45.2:9 (Connection refused)" in message


def test_nobody_with_this_address_or_size(engine: Path, both: TwoNamespaces) -> None:
    words = (f"--path=eth:{LINK},02:00:00:00:00:99", "--size=300")
    message = refused(engine, "no-answer", 3, "path", "--go", f"--policy={POLICY}", *words, prefix=both.near)
    assert "MAC address" in message
    assert "--size" in message


@pytest.mark.parametrize(
    ("where", "words"), [(f"{FAR.removesuffix('2')}3", "broadcast address"), ("198.18.99.1", "no route")]
)
def test_an_address_that_is_no_device(engine: Path, both: TwoNamespaces, where: str, words: str) -> None:
    assert words in refused(engine, "path", 3, "path", "--go", f"--path=icmp:{where}", prefix=both.near)


def test_what_needs_a_capability_says_so(engine: Path, both: TwoNamespaces) -> None:
    nobody = [
        *both.near,
        "setpriv",
        "--reuid=65534",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
    ]
    words = ("path", "--go", "--policy=other", "--memory-lock=off", "--warm-up-ns=0", "--count=20")
    for where in (f"icmp:{FAR}", f"eth:{LINK},{FAR_MAC}", f"ethercat:{LINK}"):
        message = refused(engine, "path", 3, *words, f"--path={where}", prefix=nobody)
        assert "CAP_NET_RAW" in message
    both.pings_without_rights()
    stream = run(engine, *words, f"--path=icmp:{FAR}", prefix=nobody)
    assert counts(stream, 20)["lost"] == 0


@pytest.mark.parametrize(
    "where",
    ["", "icmp", "icmp:", "icmp:board", "udp:10.0.0.1", "udp:10.0.0.1:0", "udp:10.0.0.1:65536", "udp::7",
     "eth:lo", "eth:lo,02:00:00:00:00", "eth:lo,02:00:00:00:00:0g", "eth:lo,02:00:00:00:00:01,12", "ethercat:",
     "eth:,02:00:00:00:00:01", "gpio:1", "eth:a-name-that-is-too-long,02:00:00:00:00:01"],
)  # fmt: skip
def test_what_is_no_path(engine: Path, where: str) -> None:
    assert "path" in refused(engine, "path" if where else "usage", 2, "path", "--go", f"--path={where}")


def test_an_interface_that_is_not_there(engine: Path) -> None:
    words = ("path", "--go", "--path=eth:nothing0,02:00:00:00:00:01")
    assert "there is no interface nothing0" in refused(engine, "path", 3, *words)


def test_too_many_frames_a_second(engine: Path) -> None:
    assert "interval-ns" in refused(
        engine, "usage", 2, "path", "--path=icmp:127.0.0.1", "--interval-ns=19999"
    )
