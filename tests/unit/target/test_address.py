# SPDX-License-Identifier: MIT
"""Names of targets: what is an address, and that nothing else gets as far as ssh."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge.target.address import SshAddress, parse_address, target_name


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ssh://board", SshAddress("board")),
        ("ssh://board/", SshAddress("board")),
        ("ssh://root@board:2222", SshAddress("board", "root", 2222)),
        ("ssh://a.b+c@example.org@10.0.0.2", SshAddress("10.0.0.2", "a.b+c@example.org")),
        ("ssh://root@[fd00::2]:22", SshAddress("fd00::2", "root", 22)),
        ("ssh://[fe80::1%eth0]", SshAddress("fe80::1%eth0")),
    ],
)
def test_addresses(text: str, address: SshAddress) -> None:
    assert parse_address(text) == address
    assert parse_address(address.name) == address
    assert target_name(text) == address.name


def test_local_is_no_address() -> None:
    assert parse_address("local") is None
    assert target_name("local") == "local"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "board",
        "Local",
        "ssh://",
        "ssh://-oProxyCommand=id",
        "ssh://-o@host",
        "ssh://root@-host",
        "ssh://a b",
        "ssh://a;id",
        "ssh://$(id)",
        "ssh://`id`",
        "ssh://a\nb",
        "ssh://a\n",
        "ssh://a'b",
        'ssh://a"b',
        "ssh://host:0",
        "ssh://host:65536",
        "ssh://host:+22",
        "ssh://host:٢٢",
        "ssh://höst",
        "ssh://host/path",
        "ssh://root:secret@host",
        "ssh://%h",
        "http://host",
        "ssh://[::1",
        "ssh://\0",
    ],
)
def test_what_is_none_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_address(text)
    assert "\n" not in str(caught.value)
    assert "\0" not in str(caught.value)
    assert "secret" not in str(caught.value)


@given(
    st.text(st.sampled_from("aZ09.-_@:/[]%$'\"`;&|<>(){}\\ \n\t\0é~*?!#="), max_size=30).map(
        lambda rest: f"ssh://{rest}"
    )
    | st.text(max_size=40)
)
@example("ssh://x@-F/tmp/evil")
def test_whatever_is_taken_is_harmless(text: str) -> None:
    try:
        address = parse_address(text)
    except InputError as error:
        assert "\n" not in str(error)
        return
    if address is None:
        assert text == "local"
        return
    assert not address.host.startswith("-")
    assert set(address.host) <= set(string.ascii_letters + string.digits + "._-:%")
    assert address.user is None or (
        not address.user.startswith("-")
        and set(address.user) <= set(string.ascii_letters + string.digits + "._+@-")
    )
    assert address.port is None or 0 < address.port < 65536
    assert parse_address(address.name) == address
