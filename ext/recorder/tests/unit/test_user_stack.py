# SPDX-License-Identifier: MIT
"""Stacks as the engine describes them: what is claimed of them, and text that somebody else has made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.record.model import Result
from rtgauge_ext.recorder import user_stack
from rtgauge_ext.recorder.entries import MOST_PLACES, joined_results
from rtgauge_ext.recorder.user_stack import (
    BP,
    SP,
    FilePlace,
    FrameRule,
    RecordedStack,
    frames_of,
    rule_stacks,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILES = "m1 - /nowhere/libc.so\nm2 - /nowhere/control\n"


def with_rules(monkeypatch: pytest.MonkeyPatch, rules: Mapping[int, FrameRule]) -> None:
    """Say by the offset of a place how its caller is found."""
    monkeypatch.setattr(user_stack, "_rule", lambda _stack, place, inner: rules.get(place.offset))


def test_a_function_without_a_frame_is_left_by_the_stack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The kernel's chain lacks the caller of fsync (0x20), which has the frame that the frame pointer names.
    text = FILES + "f 1 10\nf 2 30\nf 2 40\ns0 2 20\nb 5000\n"
    with_rules(
        monkeypatch, {0x10: FrameRule(SP, 8, -8, None), 0x20: FrameRule(BP, 16, -8, -16), 0x30: FrameRule(BP, 16, -8, -16)}
    )  # fmt: skip
    found = frames_of(RecordedStack.parse(text))
    assert found == [FilePlace(1, 0x10), FilePlace(2, 0x20), FilePlace(2, 0x30), FilePlace(2, 0x40)]


def test_a_chain_from_no_frame_pointer_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = FILES + "f 1 10\nf 2 66\ns10 2 20\np8 9000\nb 0\n"
    # The innermost function has saved the frame pointer and used the register for something else.
    with_rules(monkeypatch, {0x10: FrameRule(SP, 24, -8, -16), 0x20: FrameRule(BP, 16, -8, -16)})
    assert frames_of(RecordedStack.parse(text)) == [FilePlace(1, 0x10), FilePlace(2, 0x20)]


def test_without_tables_only_the_innermost_function_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    with_rules(monkeypatch, {})
    text = FILES + "f 1 10\nf 2 30\ns0 2 20\n"
    assert frames_of(RecordedStack.parse(text)) == [FilePlace(1, 0x10)]
    assert words_of(RecordedStack.parse(text)) == "libc.so+0x10"


def test_another_build_of_a_file_gives_no_names(tmp_path: Path) -> None:
    file = tmp_path / "control"
    file.write_bytes(b"\x7fELF, as far as it goes")
    assert words_of(RecordedStack.parse(f"m1 00ff {file}\nf 1 10\n")) == "control+0x10"


@given(st.text(alphabet="mfspb0123456789abcdef- \n/xé", max_size=200))
def test_any_text_is_read(text: str) -> None:
    stack = RecordedStack.parse(text)
    assert len(frames_of(stack)) <= 1
    assert isinstance(words_of(stack), str)


def stack(place: int, count: int) -> Result:
    labels: dict[str, str | int] = {
        "task": "control",
        "rule": "disk",
        "call": "fsync",
        "stack": f"{place:08x}",
    }
    return Result(name="rule-stack", labels=labels, values={"count": count, "frames": f"m1 - /x/c\nf 1 {place:x}\n"})  # fmt: skip


def test_sessions_keep_the_most_frequent_places_of_a_rule() -> None:
    results = [stack(place, place + session) for session in range(3) for place in range(10, 20)]
    found = rule_stacks(joined_results(results))
    assert [each.where for each in found] == [f"c+0x{place:x}" for place in (19, 18, 17)][:MOST_PLACES]
    assert found[0].stacks == 19 + 20 + 21
