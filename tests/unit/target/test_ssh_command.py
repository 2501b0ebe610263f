# SPDX-License-Identifier: MIT
"""What reaches a shell on the target: every word arrives as it was, whatever it holds."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge.target.ssh_connection import remote_command
from tests.support.patience import PATIENCE_S

SHELLS = [["sh"], ["bash"], ["busybox", "sh"]]
WORDS = st.lists(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40), max_size=4
)
MARK = "mark-1"


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[-1] if len(shell) == 1 else "busybox")
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(words=WORDS)
@example(words=["$(touch /tmp/x)", "`id`", "'; id; '", '"'])
@example(words=["-n", "--", "a\nb\n", "\\", "*"])
@example(words=["!", "~", "a\\'b", "\r\n"])
@example(words=["", " ", "é"])
def test_hostile_words_arrive_whole(shell: list[str], words: list[str]) -> None:
    assert shutil.which(shell[0]) is not None, f"{shell[0]} is missing: sh tools/packages.sh test"
    line = remote_command('for word; do printf "%s\\0" "$word"; done', words, MARK)
    completed = subprocess.run([*shell, "-c", line], capture_output=True, check=True, timeout=PATIENCE_S)
    assert completed.stdout == f"{MARK}\n".encode() + b"".join(word.encode() + b"\0" for word in words)
    assert completed.stderr == f"{MARK} 0\n".encode()


@pytest.mark.parametrize("status", [0, 1, 3, 137, 255])
def test_the_exit_status_arrives_if_the_command_leaves_at_once(status: int) -> None:
    completed = subprocess.run(
        ["sh", "-c", remote_command(f"exit {status}", [], MARK)],
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert completed.stderr == f"{MARK} {status}\n".encode()


def test_a_nul_is_refused() -> None:
    with pytest.raises(InputError, match="NUL"):
        remote_command("true", ["a\0b"], MARK)
