# SPDX-License-Identifier: MIT
"""The controller's priorities (Brown & Martin 2010, sec. 3.6) on machines that do not exist."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rtgauge.system.deployment.stages import Write
from rtgauge.system.priorities import Controller, controller_actions
from rtgauge.target.file_batch import Files


def stat(
    tid: int, name: str, policy: int, priority: int, process: int | None = None
) -> dict[str, dict[str, str]]:
    """A thread's stat: field 22 is its start time, 40 its priority, 41 its policy."""
    fields = ["S", *["0"] * 18, str(1000 + tid), *["0"] * 17, str(priority), str(policy), "0", "0"]
    return {f"/proc/{process or tid}/task/{tid}/stat": {"text": f"{tid} ({name}) {' '.join(fields)}\n"}}


def raised_priorities(
    files: dict[str, dict[str, str]], *raised: str, measured: int = 98
) -> tuple[dict[str, str], list[str]]:
    actions, missing = controller_actions(Controller(raised), Files(files), own=[7], measured=measured)
    return {
        setting.path.split(":")[1]: setting.value
        for action in actions
        if isinstance(action, Write)
        for setting in action.settings
    }, missing


MACHINE = (
    stat(7, "rtgauge", 0, 0)
    | stat(8, "lease", 0, 0, process=7)
    | stat(18, "migration/0", 1, 99)
    | stat(20, "watchdog", 1, 99)
    | stat(21, "audio", 2, 95)
    | stat(22, "quiet", 1, 80)
    | stat(23, "bash", 0, 0)
    | stat(50, "irq/24-eth0", 1, 50)
    | stat(51, "ktimers/1", 1, 1)
    | stat(52, "a) b (c", 1, 90)
    | {"/sys/kernel/irq/24/actions": {"text": "eth0,other\n"}}
)


def test_the_papers_priorities() -> None:
    assert raised_priorities(MACHINE)[0] == {
        "7": "fifo 10 reset-on-fork",
        "8": "fifo 10 reset-on-fork",
        "20": "fifo 80",
        "21": "rr 80",
        "52": "fifo 80",
    }


def test_threads_are_raised_by_device_or_by_name() -> None:
    settings, missing = raised_priorities(MACHINE, "eth0", "ktimers", "usb9")
    assert (settings["50"], settings["51"]) == ("fifo 99", "fifo 99")
    assert missing == ["usb9"]


def test_the_cap_is_below_what_is_measured() -> None:
    settings, _ = raised_priorities(MACHINE, measured=60)
    assert (settings["22"], settings["21"]) == ("fifo 59", "rr 59")
    assert raised_priorities(stat(20, "x", 1, 5), measured=1)[0] == {"20": "fifo 1"}


@given(
    st.dictionaries(
        st.sampled_from(["/proc/1/task/2/stat", "/proc/7/task/7/stat", "/sys/kernel/irq/1/actions"]),
        st.builds(lambda t: {"text": t}, st.text()),
    )
)
def test_any_text_is_survived(files: dict[str, dict[str, str]]) -> None:
    controller_actions(Controller(("a", "(")), Files(files), own=[7], measured=98)
