# SPDX-License-Identifier: MIT
"""What ssh says when it fails, as one line that says what to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.target.address import SshAddress
from rtgauge.target.ssh_errors import explain_ssh

BOARD = SshAddress("board", "root", 2222)
CHANGED = """@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
Host key verification failed.
"""


@pytest.mark.parametrize(
    ("reported", "words"),
    [
        (CHANGED, ["host key", "ssh-keygen -R '[board]:2222'"]),
        (
            (
                "No ED25519 host key is known for [board]:2222 and you have requested strict "
                "checking.\nHost key verification failed.\n"
            ),
            ["not known yet", "ssh -p 2222"],
        ),
        (
            "root@board: Permission denied (publickey).\n",
            ["does not let this user in", "ssh -p 2222 root@board"],
        ),
        (
            "ssh: Could not resolve hostname board: Name or service not known\n",
            ["the host's name is unknown"],
        ),
        ("ssh: connect to host board port 2222: No route to host\n", ["No route to host", "switched on"]),
        ("ssh: connect to host board port 2222: Connection refused\n", ["Connection refused", "sshd"]),
        ("ssh: connect to host board port 2222: Connection timed out\n", ["timed out"]),
        ("something new\n", ["something new", "try it by hand"]),
        ("", ["ssh said nothing"]),
    ],
)
def test_each_failure_says_what_to_do(reported: str, words: list[str]) -> None:
    message = str(explain_ssh(reported, BOARD))
    assert all(word in message for word in words), message
    assert message.startswith("ssh://root@board:2222")


@given(st.text(max_size=300))
def test_whatever_it_says_it_is_one_printable_line(reported: str) -> None:
    message = str(explain_ssh(reported, BOARD))
    assert message.isprintable()
    assert len(message) < 700
