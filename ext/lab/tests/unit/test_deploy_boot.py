# SPDX-License-Identifier: MIT
"""A guest that is booted for each deployment of a run: in what order, and what becomes of one that does not
come up; no guest is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.system.test_deployment import CPU, machine

from rtgauge.errors import MeasureError
from rtgauge.record.model import StepKey
from rtgauge.runner.interrupt import Abandoned, Interrupt
from rtgauge.target.file_batch import Files
from rtgauge_ext.lab import boot_deployments
from rtgauge_ext.lab.boot_deployments import BootDeployments, NotBooted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

GUEST = {
    "": machine([[0, 1], [2, 3]], c_states=False),
    "quiet": machine([[0, 1], [2, 3]], c_states=False),
    "quiet nosmt": machine([[0], [2]], c_states=False, smt="off", offline=(1, 3)),
    "quiet nosmt cpufreq.default_governor=performance": machine(
        [[0], [2]], c_states=False, smt="off", offline=(1, 3)
    ),
    "nosmt cpufreq.default_governor=performance": machine(
        [[0], [2]], c_states=False, smt="off", offline=(1, 3)
    ),
}
"""What it is with which words; with others it does not come up."""


class Guest:
    """The target and what boots it, in deployments."""

    name, machine = "lab:own", "x86_64"

    def __init__(self, append: str = "") -> None:
        self.append = self.now = append
        self.done: list[str] = []
        self.journal = ""

    def read(self, paths: Iterable[str]) -> Files:
        more = {
            "/proc/sys/kernel/arch": {"text": "x86_64"},
            f"{CPU}/isolated": {"text": ""},
            "/var/lib/rtgauge/journal.ndjson": {"text": self.journal},
        }
        return GUEST[self.now].files | more

    def agent(self, verb: str, *arguments: str) -> list[dict[str, Any]]:
        pairs = arguments[arguments.index("--") + 1 :] if verb == "set" else ()
        return [
            {"path": path, "old": None, "now": value}
            for path, value in zip(pairs[::2], pairs[1::2], strict=True)
        ]

    def check(self) -> None:
        self.done.append("check")

    def begin_anew(self, reboot: Callable[[], object]) -> None:
        self.done.append("close")
        reboot()

    def close(self) -> None:
        self.done.append("close")

    def boot(self, append: str) -> None:
        self.done.append(f"boot {append}")
        if append not in GUEST:
            raise MeasureError("lab:own did not come up within 180 s")
        self.now = append

    def console(self) -> bytes:
        return b"Linux, booted with " + self.now.encode()

    def leave(self) -> None:
        self.done.append("leave")


def boots(
    guest: Guest, monkeypatch: pytest.MonkeyPatch, interrupt: Interrupt | None = None
) -> BootDeployments:
    monkeypatch.setattr(boot_deployments, "GuestReboots", lambda name, engines, notify: guest)
    monkeypatch.setattr(boot_deployments, "where_now", lambda name: None)
    return BootDeployments(guest, interrupt or Interrupt(), lambda text: None)  # pyright: ignore[reportArgumentType]


def key(deployment: str, **parameters: object) -> StepKey:
    return StepKey(
        probe="wakeup",
        parameters=parameters,
        load="idle",
        deployment=deployment,
        targets={"self": "lab:own"},
        repeat=1,
    )


def test_one_boot_for_each_change_of_the_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    guest = Guest()
    deployments = boots(guest, monkeypatch)
    for name in ("M", "M", "as-is"):
        applied, _ = deployments.bring_about(name)
        assert applied.report.by == "boot"
    assert [what for what in guest.done if what.startswith("boot")] == [
        "boot nosmt cpufreq.default_governor=performance",
        "boot ",
    ]
    deployments.leave()
    assert guest.done[-2:] == ["close", "leave"]


def test_a_run_with_a_boot_of_its_own_boots_the_guest_again(monkeypatch: pytest.MonkeyPatch) -> None:
    guest = Guest()
    deployments = boots(guest, monkeypatch)
    for _ in range(2):
        deployments.forget()
        deployments.bring_about("as-is")
        deployments.bring_about("as-is")
    assert [what for what in guest.done if what.startswith("boot")] == ["boot ", "boot "]


def test_a_booted_deployment_is_removed_first_and_is_not_as_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guest = Guest("quiet nosmt")
    deployments = boots(guest, monkeypatch)
    applied, _ = deployments.bring_about("as-is")
    assert [what for what in guest.done if what.startswith("boot")] == ["boot quiet", "boot quiet nosmt"]
    assert applied.report.boot_words == "quiet nosmt"


def test_other_boot_words_stay_in_every_deployment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guest = Guest("quiet")
    applied, _ = boots(guest, monkeypatch).bring_about("M")
    assert [what for what in guest.done if what.startswith("boot")] == [
        "boot quiet nosmt cpufreq.default_governor=performance"
    ]
    assert applied.report.boot_words == "quiet nosmt cpufreq.default_governor=performance"


def test_a_failed_boot_is_left_out_once_and_its_console_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guest = Guest()
    deployments = boots(guest, monkeypatch)
    for _ in range(2):
        with pytest.raises(NotBooted, match="did not come up") as caught:
            deployments.bring_about("Single")
        assert "console" in caught.value.remedy
    assert len([what for what in guest.done if what.startswith("boot")]) == 1
    deployments.bring_about("M")
    assert deployments.console().decode().splitlines() == [
        "--- booted for what was found",
        "Linux, booted with ",
        "--- booted for Single",
        "Linux, booted with ",
        "--- booted for M",
        "Linux, booted with nosmt cpufreq.default_governor=performance",
    ]


def test_one_that_comes_up_as_something_else_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    guest = Guest()
    deployments = boots(guest, monkeypatch)
    monkeypatch.setitem(GUEST, "nosmt cpufreq.default_governor=performance", GUEST[""])
    with pytest.raises(NotBooted, match="the CPUs 0-3 are online, but the deployment needs 0,2"):
        deployments.bring_about("M")


def test_unbootable_deployments_are_named_before_any_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    guest = Guest()
    deployments = boots(guest, monkeypatch)
    good, missing = deployments.possible([key("CHM"), key("M"), key("M", cpu="1"), key("as-is", cpu="3")])
    assert [key.deployment for key in good] == ["M", "as-is"]
    assert [entry.what for entry in missing] == ["deployment CHM", "deployment M"]
    assert "not on CPU 1" in missing[1].reason


def test_a_run_that_was_ended_boots_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    guest, interrupt = Guest(), Interrupt()
    deployments = boots(guest, monkeypatch, interrupt)
    interrupt.requested = True
    with pytest.raises(Abandoned):
        deployments.bring_about("M")
    assert guest.done == ["close"]


def test_what_deploy_apply_holds_is_not_booted_away(monkeypatch: pytest.MonkeyPatch) -> None:
    guest = Guest()
    guest.journal = '{"owner":"held","run":"deploy-MI","path":"/sys/x","state":"s"}\n'
    with pytest.raises(MeasureError, match="rtgauge restore --applied --target lab:own"):
        boots(guest, monkeypatch)
    assert guest.done == []
