# SPDX-License-Identifier: MIT
"""The kernel modules in real kernels: they are built against Debian's headers, loaded into guests, and driven
by kmod/test.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from rtgauge_ext.lab.headers import headers_tree
from tests.lab.kmod_guests import BEGUN, BUILT_ONLY, KERNELS, KMOD, MODULES, KmodGuest, Measured, OwnKernel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.lab.conftest import Lab
    from tests.lab.kmod_guests import Kernel

IRQ, THREAD, IRQ_THREAD, IRQ_DEFAULT = range(4)
HIGH, MERGED, NO_IRQ, HARD = 1, 2, 4, 8
ENDED, STOPPED, BY_COUNT, OVERLOAD = 2, 1, 2, 3
NO_LINE = 0xFFFF
WIRE = "join=0-1,2-3"
ONE = pytest.mark.parametrize(
    "guest", [kernel for kernel in KERNELS if str(kernel) == "trixie-rt-x86_64"], indirect=True, ids=str
)
"""What is the same whatever the kernel."""
EVERY = [
    pytest.param(kernel, marks=pytest.mark.ci if str(kernel) == "trixie-rt-x86_64" else ())
    for kernel in KERNELS
]
"""Every kernel, of which CI takes one."""


@pytest.fixture(scope="module", params=KERNELS, ids=str)
def guest(
    request: pytest.FixtureRequest, lab: Lab, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KmodGuest]:
    guest = KmodGuest(lab, request.param, tmp_path_factory.mktemp("kmod"))
    yield guest
    guest.close()


@pytest.fixture
def loaded(guest: KmodGuest) -> Iterator[KmodGuest]:
    """With the modules loaded; whatever a test does, the kernel has nothing to complain of, and they can be
    removed.
    """
    guest.unload()
    guest.load(WIRE)
    yield guest
    assert guest.unload() == []


@pytest.mark.parametrize("kernel", [*EVERY, *BUILT_ONLY], ids=str)
def test_the_modules_are_built_without_a_warning(kernel: Kernel, tmp_path: Path) -> None:
    # sparse does not know the options of the kernel for RISC-V
    sparse = [] if kernel in BUILT_ONLY else ["C=2", "CHECK=sparse"]
    modules, output = kernel.make(tmp_path, ["-s", "W=1", *sparse, "KCFLAGS=-Werror"])
    assert sorted(path.stem for path in modules) == sorted(MODULES)
    if not isinstance(kernel, OwnKernel):  # over a serial line, debug information would take minutes
        assert not [path.name for path in modules if b".debug_info" in path.read_bytes()]
    assert [
        line for line in output.splitlines() if "warning" in line.lower() or "error" in line.lower()
    ] == []


@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if isinstance(kernel, OwnKernel)], ids=str)
def test_checkpatch_finds_nothing(kernel: OwnKernel) -> None:
    """Only a kernel's sources have it.

    Left out: modules outside of a kernel need its version; a header for user space has no BIT(); the
    miscdevice's
    operations are each device's own; where a line is broken is clang-format's business."""
    left_out = "LINUX_VERSION_CODE,CONSTANT_COMPARISON,BIT_MACRO,CONST_STRUCT,OPEN_ENDED_LINE"
    files = [str(path) for path in sorted(KMOD.glob("*.[ch]"))]
    words = [
        "perl",
        str(kernel.sources / "scripts/checkpatch.pl"),
        "--no-tree",
        "--strict",
        "--terse",
        "--no-summary",
        "--ignore",
        left_out,
        "--file",
        *files,
    ]
    assert subprocess.run(words, capture_output=True, text=True, check=False).stdout == ""


def test_sparse_finds_what_is_wrong(tmp_path: Path) -> None:
    """A check that cannot fail is none."""
    (tmp_path / "Kbuild").write_text("obj-m := broken.o\n")
    (tmp_path / "broken.c").write_text(
        "#include <linux/module.h>\nint broken(int __user *p);\nint broken(int __user *p) { return "
        '*p; }\nMODULE_LICENSE("GPL");\n'
    )
    tree = headers_tree("x86_64", print)
    _modules, output = tree.make(tree.releases()[0], tmp_path, tmp_path, ["C=2", "CHECK=sparse"])
    assert "noderef" in output


def edges(text: str) -> list[dict[str, int]]:
    """What `kmod_test gpio` printed of each edge."""
    return [
        {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}
        for line in text.splitlines()
        if line.startswith("edge ")
    ]


def beside(first: str, second: str) -> str:
    """A script: `first` has begun to measure, `second` runs to its end, `first` is stopped, and what it
    measured is printed after a line of dashes.
    """
    begun = "until grep -q ^status first.txt; do kill -0 $first || exit 1; sleep 0.05; done"
    ended = "kill $first; wait $first || exit 1; echo ----; cat first.txt"
    return (
        f"rm -f first.txt; ./kmod_test {first} >first.txt & first=$!; {begun}; ./kmod_test {second} || "
        f"exit 1; {ended}"
    )


def test_two_joined_lines_are_a_wire_for_any_program(loaded: KmodGuest) -> None:
    """GPIO uAPI v2 as gpio-utils use it; the wire's own times are around those of the kernel's GPIO character
    device.
    """
    printed, _, recorded = loaded.shell(beside("wire", "gpio out=0 in=1 count=200")).partition("----")
    observed, wire = edges(printed), Measured.of(recorded)
    assert [edge["sequence"] for edge in observed] == list(range(1, 201))
    assert [edge["id"] for edge in observed] == [1, 2] * 100
    assert [sample.number for sample in wire.samples] == list(range(200))
    assert (wire.status["lost"], wire.status["missed"], wire.status["state"], wire.status["reason"]) == (
        0,
        0,
        ENDED,
        STOPPED,
    )
    for edge, sample in zip(observed, wire.samples, strict=True):
        out, raised, handled = sample.times[:3]
        assert (sample.line, sample.made_by, sample.flags & HIGH) == (1, 0, edge["id"] == 1)
        assert edge["set"] <= out <= raised <= edge["time"] <= handled


def test_an_edge_that_nobody_waits_for_is_recorded_too(loaded: KmodGuest) -> None:
    printed, _, recorded = loaded.shell(
        beside("wire", "periodic period=2000000 count=50 out=rtgauge_wire:4")
    ).partition("----")
    wire = Measured.of(recorded)
    assert {
        (sample.line, sample.made_by, sample.flags & NO_IRQ, sample.times[1]) for sample in wire.samples
    } == {(NO_LINE, 4, NO_IRQ, 0)}
    assert wire.status["missed"] == len(wire.samples) == Measured.of(printed).status["samples"]


@ONE
def test_lines_are_joined_and_cut(loaded: KmodGuest) -> None:
    loaded.shell("./kmod_test join a=4 b=7")
    assert "peer=7" in loaded.shell("./kmod_test line line=4")
    assert "EBUSY" in loaded.shell("./kmod_test join a=4 b=5 2>&1 || true")
    loaded.shell("./kmod_test cut a=4 b=7")
    assert f"peer={NO_LINE}" in loaded.shell("./kmod_test line line=7")
    assert "ENOENT" in loaded.shell("./kmod_test cut a=4 b=7 2>&1 || true")


@pytest.mark.parametrize("map_rings", [0, 1], ids=["read", "mmap"])
@pytest.mark.parametrize("context", [IRQ, THREAD], ids=["irq", "thread"])
def test_periodic(loaded: KmodGuest, context: int, map_rings: int) -> None:
    """Each toggle is due on the grid, in the order of its steps, and out between them, as the wire saw it."""
    period, count = 5_000_000, 200
    words = (
        f"periodic context={context} period={period} count={count} cpu=1 map={map_rings} "
        f"out=rtgauge_wire:0 priority={90 if context else 0}"
    )
    task = Measured.of(loaded.shell(f"./kmod_test {words}"))
    assert task.status["samples"] + task.status["missed"] == count
    assert (len(task.samples), task.status["lost"], task.status["state"], task.status["reason"]) == (
        task.status["samples"],
        0,
        ENDED,
        BY_COUNT,
    )
    number = 0
    for index, sample in enumerate(task.samples):
        expected, irq, thread, finished = sample.times[:4]
        assert sample.number == number
        assert expected == task.status["start"] + number * period
        assert sample.cpu == 1
        assert sample.flags & HIGH == (index + 1) % 2
        assert expected <= irq <= finished
        assert (irq <= thread <= finished) if context == THREAD else thread == 0
        number += 1 + (finished - expected - 1) // period


def test_the_wire_sees_each_toggle_when_it_was_made(loaded: KmodGuest) -> None:
    """The wire's time stamp of an edge lies between the task's own two."""
    printed, _, recorded = loaded.shell(
        beside("wire", "periodic period=5000000 count=100 cpu=1 out=rtgauge_wire:0")
    ).partition("----")
    for toggle, edge in zip(Measured.of(printed).samples, Measured.of(recorded).samples, strict=True):
        assert toggle.times[1] <= edge.times[0] <= toggle.times[3]


@pytest.mark.parametrize(
    "context", [IRQ, THREAD, IRQ_THREAD, IRQ_DEFAULT], ids=["irq", "thread", "irq-thread", "irq-default"]
)
def test_response(loaded: KmodGuest, context: int) -> None:
    """A user-space master over the wire: each edge is answered once, step after step, on the CPU that was
    asked for.
    """
    own_thread = "cpu=0 priority=90" if context == THREAD else ""
    response = f"response context={context} irq-cpu=1 in=rtgauge_wire:1 out=rtgauge_wire:2 {own_thread}"
    printed, _, answered = loaded.shell(beside(response, "gpio out=0 in=3 count=100")).partition("----")
    observed, task = edges(printed), Measured.of(answered)
    assert [edge["id"] for edge in observed] == [1, 2] * 50
    assert (task.status["missed"], task.status["lost"], task.status["reason"]) == (0, 0, STOPPED)
    hard = context == IRQ or (context == IRQ_DEFAULT and not loaded.kernel.preempt_rt)
    for number, (edge, sample) in enumerate(zip(observed, task.samples, strict=True)):
        irq, thread, finished = sample.times[:3]
        assert sample.number == number
        assert sample.flags == (HARD if hard else 0) | (HIGH if edge["id"] == 1 else 0)
        if hard:
            assert edge["set"] <= irq <= finished
            assert (thread, sample.cpu) == (0, 1)
        elif context == IRQ_DEFAULT:
            assert irq == 0
            assert edge["set"] <= thread <= finished
        else:
            assert edge["set"] <= irq <= thread <= finished
            assert sample.cpu == 0 or context == IRQ_THREAD
        # the answer's edge has the GPIO character device's time stamp: before it the output was set
        assert edge["set"] < edge["time"]


def held(words: str, script: str) -> str:
    """A script: a measurement is running, `script` is run, and then the one who measures is killed."""
    begun = "until grep -q ^status held.txt; do kill -0 $held || exit 1; sleep 0.05; done"
    return (
        f"rm -f held.txt; mkfifo -m 600 never; ./kmod_test {words} hold=1 <>never >held.txt & held=$!; "
        f"{begun}; {script}; kill -9 $held; wait $held; rm never"
    )


def test_the_interrupt_goes_back_to_its_cpus(loaded: KmodGuest) -> None:
    status = Measured.of(loaded.shell("./kmod_test response in=rtgauge_wire:1 stop=1")).status
    folder = f"/proc/irq/{status['irq']}"
    before = loaded.shell(f"cat {folder}/smp_affinity_list")
    assert (
        loaded.shell(held("response in=rtgauge_wire:1 irq-cpu=1", f"cat {folder}/effective_affinity_list"))
        == "1\n"
    )
    assert loaded.shell(f"cat {folder}/smp_affinity_list") == before


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("rtgauge_periodic", "periodic period=1000000 out=rtgauge_wire:0"),
        ("rtgauge_periodic", "periodic period=1000000 out=rtgauge_wire:0 context=1 priority=50"),
        ("rtgauge_response", "response in=rtgauge_wire:1 out=rtgauge_wire:2"),
        ("rtgauge_response", "response in=rtgauge_wire:1 out=rtgauge_wire:2 context=1 cpu=1 priority=50"),
        ("rtgauge_wire", "wire"),
    ],
)
def test_a_second_user_waits_and_who_is_killed_leaves_nothing(
    loaded: KmodGuest, device: str, words: str
) -> None:
    assert "EBUSY" in loaded.shell(held(words, f"./kmod_test info device={device} 2>&1"))
    assert f"module={device}" in loaded.shell(f"./kmod_test info device={device}")
    assert "thread=0" in loaded.shell("./kmod_test periodic period=1000000 count=5 out=rtgauge_wire:0")
    assert loaded.shell("ps | grep -c '[r]tgauge-task' || true") == "0\n"


@ONE
@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("periodic period=9999", "period 9999 ns is not in the range 10000 to 10000000000"),
        ("periodic period=10000000001", "period 10000000001 ns"),
        ("periodic cpu=77", "CPU 77 is not online"),
        ("periodic cpu=-1", "CPU -1 is not online"),
        ("periodic context=2", r"context 2: expected irq \(0\) or thread \(1\)"),
        ("periodic context=1", "priority 0 is not in the range 1 to 99"),
        ("periodic context=1 priority=100", "priority 100 is not in the range"),
        ("periodic priority=5", "priority 5: only a kernel thread has a priority"),
        ("periodic abi=2", "ABI 2 requested, but this module has ABI 1"),
        ("periodic reserved=1", "reserved words must be 0"),
        ("periodic start=1", "start time 1 is past"),
        ("periodic out=nowhere:1", "there is no GPIO chip 'nowhere'"),
        ("periodic out=rtgauge_wire:8", "cannot request line 8 of chip 'rtgauge_wire' as 'out': -EINVAL"),
        ("periodic out=rtgauge_wire:1:8", "invalid label, number or flags"),
        ("periodic out=rtgauge_wire:1:6", "invalid label, number or flags"),
        ("response", "no input line given"),
        ("response in=rtgauge_wire:1 context=4", "context 4 is not in the range 0 to 3"),
        ("response in=rtgauge_wire:1 cpu=1", "CPU 1: only a kernel thread has a CPU"),
        ("response in=rtgauge_wire:1 context=1 priority=50", "CPU -1 is not online"),
        ("response in=rtgauge_wire:1 irq-cpu=99", "CPU 99 is not online"),
        ("wire reserved=1", "reserved words must be 0"),
        ("wire capacity=17", "capacity 17: expected a power of 2"),
        ("join a=0 b=99", "join 0-99: expected two different lines of 0 to 7"),
        ("line line=8", "line 8 is not in the range 0 to 7"),
    ],
)
def test_wrong_parameters_are_refused_with_one_line(loaded: KmodGuest, words: str, why: str) -> None:
    printed, _, log = loaded.shell(f"./kmod_test {words} 2>&1; dmesg").partition("EINVAL")
    lines = [
        line
        for line in log.rpartition(BEGUN)[2].splitlines()
        if re.search(r"rtgauge_(wire|periodic|response): ", line)
    ]
    assert "status" not in printed
    assert len([line for line in lines if not line.split("] ")[1].startswith("misc ")]) == 1
    assert re.search(why, lines[-1])


@ONE
def test_a_line_that_is_taken_is_busy(loaded: KmodGuest) -> None:
    """And while a line is in use, the wire stays."""
    printed = loaded.shell(
        held("hold-line line=5", "./kmod_test periodic out=rtgauge_wire:5 2>&1; rmmod rtgauge_wire 2>&1")
    )
    assert "EBUSY" in printed
    assert "unavailable" in printed or "busy" in printed


@ONE
def test_what_a_full_ring_has_no_room_for_is_counted(loaded: KmodGuest) -> None:
    task = Measured.of(loaded.shell("./kmod_test periodic period=2000000 count=100 capacity=16 late=1"))
    assert len(task.samples) == 16
    assert task.status["samples"] + task.status["missed"] == 100
    assert task.status["lost"] == task.status["samples"] - 16


@ONE
def test_a_period_that_leaves_nothing_to_the_cpu_ends(loaded: KmodGuest) -> None:
    """An emulated processor takes far more than 10 us to wake a thread that makes an edge."""
    words = "periodic period=10000 count=10000000 capacity=64 cpu=1 context=1 priority=90 out=rtgauge_wire:0"
    status = Measured.of(loaded.shell(f"./kmod_test {words}")).status
    assert (status["state"], status["reason"]) == (ENDED, OVERLOAD)
    assert status["missed"] >= 5000


@ONE
def test_a_measurement_can_be_stopped_and_begun_again(loaded: KmodGuest) -> None:
    printed = loaded.shell("./kmod_test periodic period=1000000 stop=1 again=20 map=1")
    statuses = [Measured.of(line).status for line in printed.splitlines() if line.startswith("status")]
    assert [status["reason"] for status in statuses] == [0, STOPPED] * 20


@pytest.mark.parametrize("device", ["rtgauge_wire", "rtgauge_periodic", "rtgauge_response"])
def test_nonsense_harms_nobody(loaded: KmodGuest, device: str) -> None:
    """Commands, parameters, mappings and reads drawn at random, and a user that overwrites what it maps."""
    for seed in (1, 2, 3):
        assert loaded.shell(f"./kmod_test hostile device={device} seed={seed} count=3000") == "calls done\n"
    # processes that share what one of them opened, so that its calls overtake one another, while another user
    # changes the wire
    beside = (
        "" if device == "rtgauge_wire" else "./kmod_test hostile seed=5 count=1000 processes=2 >/dev/null & "
    )
    assert (
        loaded.shell(f"{beside}./kmod_test hostile device={device} seed=4 count=1000 processes=4 && wait")
        == "calls done\n"
    )
    assert "reason=2" in loaded.shell("./kmod_test periodic period=1000000 count=10")


@ONE
@pytest.mark.parametrize(
    "parameter", ["lines=1", "lines=65", "join=0", "join=0-0", "join=0-1,1-2", "join=0-9", "join=0-1x"]
)
def test_wrong_module_parameters_are_refused(loaded: KmodGuest, parameter: str) -> None:
    loaded.shell(f"rmmod rtgauge_wire; echo {BEGUN} >/dev/kmsg")
    printed, _, log = loaded.shell(f"insmod rtgauge_wire.ko {parameter} 2>&1 || true; dmesg").partition(
        "nvalid"
    )
    assert "insmod" in printed
    # once for each of the two system calls that insmod tries
    assert len(set(re.findall(r"rtgauge_wire: (?:lines|join)\b.*", log.rpartition(BEGUN)[2]))) == 1


LOADS = int(os.environ.get("RTGAUGE_KMOD_LOADS", "20"))
"""1,000 in the nightly run."""


@pytest.mark.timeout(300 + 10 * LOADS)
@pytest.mark.parametrize("guest", EVERY, indirect=True, ids=str)
def test_loading_and_unloading_under_load(loaded: KmodGuest) -> None:
    """All four modules, with something measured in between, while other tasks take the CPUs and memory."""
    loaded.unload()
    rounds = f"""
stress-ng --quiet --taskset 1 --cpu 1 --vm 1 --vm-bytes 64M --fork 1 >/dev/null 2>&1 & load=$!
trap 'kill $load; wait $load' EXIT
until grep -q stress-ng-fork /proc/[0-9]*/comm 2>/dev/null; do kill -0 $load || exit 6; sleep 0.1; done
i=0
while [ $i -lt {LOADS} ]; do
	insmod rtgauge_core.ko && insmod rtgauge_wire.ko {WIRE} && insmod rtgauge_periodic.ko && insmod rtgauge_response.ko || exit 1
	case $((i % 4)) in
	0) ./kmod_test periodic period=100000 count=3 out=rtgauge_wire:0 >out.txt || exit 2 ;;
	1) ./kmod_test response in=rtgauge_wire:1 out=rtgauge_wire:2 stop=1 >out.txt || exit 3 ;;
	2) ./kmod_test gpio out=0 in=1 count=1 >out.txt || exit 4 ;;
	esac
	for module in response periodic wire core; do rmmod rtgauge_$module || exit 5; done
	i=$((i + 1))
	echo $i >rounds.txt
done
kill -0 $load || exit 7
echo $i rounds"""
    assert loaded.shell(rounds, timeout_s=300 + 10 * LOADS) == f"{LOADS} rounds\n"
