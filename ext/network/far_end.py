# SPDX-License-Identifier: MIT
"""How the far end of a network path is written, and the address of its host."""

from __future__ import annotations

import ipaddress
import re
import socket

from rtgauge.errors import InputError, MeasureError

ICMP = re.compile(r"icmp:(?:\[([^\]\s]{1,80})\]|(\S{1,253}))")
UDP = re.compile(r"udp:(?:\[([^\]\s]{1,80})\]|([^:\[\]\s]{1,253})):([0-9]{1,5})")
INTERFACE = r"[^\s:,/]{1,15}"
ETHERNET = re.compile(
    rf"eth:{INTERFACE},[0-9a-fA-F]{{2}}(?::[0-9a-fA-F]{{2}}){{5}}(?:,0x[0-9a-fA-F]{{3,4}})?"
)
ETHERCAT = re.compile(rf"ethercat:{INTERFACE}")
KINDS = ("icmp:", "udp:", "eth:", "ethercat:")
FORMS = "icmp:HOST, udp:HOST:PORT, eth:INTERFACE,MAC[,ETHERTYPE] or ethercat:INTERFACE"


def check_far_end(text: str) -> str:
    """Return the path to a far end if it is valid (README.md). Raises ValueError, with the notation,
    otherwise.
    """
    udp = UDP.fullmatch(text)
    valid = (
        (1 <= int(udp[3]) <= 65535)
        if udp
        else any(form.fullmatch(text) for form in (ICMP, ETHERNET, ETHERCAT))
    )
    if not text.isprintable() or not valid:
        raise ValueError(f"'{text[:100]}' is not a path to a far end; give {FORMS}")
    return text


def path_to(peer: str) -> str:
    """Return the path that `peer` stands for: a path as it is, or a host, which answers echo requests."""
    return peer if peer.startswith(KINDS) else f"icmp:{peer}"


def far_end_words(path: str) -> str:
    """Return how a sentence names the far end, such as `192.168.1.5`."""
    kind, _, rest = path.partition(":")
    return {"eth": f"the device on {rest}", "ethercat": f"the EtherCAT slaves on {rest}"}.get(kind, rest)


def peer_of(path: str) -> str:
    """Return the address of a resolved path's far end, or the interface that the path names."""
    kind, _, rest = path.partition(":")
    match = ICMP.fullmatch(path) or UDP.fullmatch(path)
    if match is not None:
        return match[1] or match[2]
    return rest.partition(",")[0] if kind in {"eth", "ethercat"} else rest


def resolved(path: str) -> str:
    """Return the path with its host name resolved to an address, because the engine does not resolve names.

    Raises InputError if the path is empty, and MeasureError if the host is unknown.
    """
    if not path:
        raise InputError(
            f"name the far end: --peer HOST, or --path {FORMS}; --peer 127.0.0.1 measures this machine "
            "itself, without a wire"
        )
    match = UDP.fullmatch(path) or ICMP.fullmatch(path)
    if match is None:
        return path
    host = match[1] or match[2]
    try:
        address = str(ipaddress.ip_address(host))
    except ValueError:
        try:
            address = str(socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)[0][4][0])
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise MeasureError(
                f"path {path}: this machine cannot find the address of the host {host} ({reason}); give the "
                "address itself"
            ) from None
    if match.re is ICMP:
        return f"icmp:{address}"
    return f"udp:[{address}]:{match[3]}" if ":" in address else f"udp:{address}:{match[3]}"
