# SPDX-License-Identifier: MIT
"""The load `network`: 100 iperf3 clients request blocks of 64 KB from one server at 1 Mbit/s each (Delgado et
al. 2020, section V).
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from rtgauge.errors import InputError
from rtgauge.load.load import Load, LoadContext, LoadTarget, PartSpec
from rtgauge.load.processes import ProcessStat

CLIENTS = 100
BITS_PER_SECOND_A_CLIENT = 1_000_000
BLOCK_BYTES = 64 * 1024
DEFAULT_PORT = 5201
LONGEST_S = 86400
"""The longest time that iperf3 accepts."""

# Two unnamed network namespaces, joined by a veth pair, vanish with their last process, however it ends. The
# inner shell fetches its end of the pair by its process id. 198.18.0.0/15 is reserved for benchmarks (RFC
# 2544). The server has its own session, so that the SIGTERM that ends the load reaches the client first. The
# client then prints its result, and --one-off ends the server. Programs have full paths, because a bare name
# in BusyBox's shell may be BusyBox's ip or unshare, which do less.
VETH = """
set -eu
ip=$1 nsenter=$2 setsid=$3 unshare=$4 port=$5
shift 5
"$ip" link set lo up
"$ip" link add rtg-client type veth peer name rtg-server
"$setsid" "$unshare" --net sh -c '
set -eu
"$3" --net="/proc/$1/ns/net" "$4" link set rtg-server netns "$$"
"$4" link set lo up
"$4" address add 198.18.0.1/30 dev rtg-server
"$4" link set rtg-server up
exec iperf3 --server --one-off --bind 198.18.0.1 --port "$2" >/dev/null
' sh "$$" "$port" "$nsenter" "$ip" &
server=$!
"$ip" address add 198.18.0.2/30 dev rtg-client
"$ip" link set rtg-client up
"""
LOOPBACK = """
set -eu
port=$1; shift
setsid iperf3 --server --one-off --bind 127.0.0.1 --port "$port" >/dev/null &
server=$!
"""
# /proc/PID/net/tcp shows PID's namespace. The client starts once the server listens (state 0A) on its port.
CLIENT = """
hex=$(printf ':%04X' "$port")
tries=0
until grep -q "$hex 00000000:0000 0A" "/proc/$server/net/tcp" 2>/dev/null; do
	kill -0 "$server"
	tries=$((tries + 1))
	test "$tries" -lt 200
	sleep 0.05
done
exec iperf3 "$@" --port "$port"
"""

# BusyBox's ip also makes a pair, but ignores the name of the other end.
VETH_TRIAL = '"$1" link add rtg-client type veth peer name rtg-server && "$1" link show rtg-server'
NAMESPACES = (["--net"], ["--user", "--map-root-user", "--net"])
TOOLS = ("ip", "nsenter", "setsid", "unshare")
COSTS_LITTLE = (
    "its packets do not pass through a network card, so they take less CPU time than real network traffic"
)


def parse_peer(text: str) -> tuple[str, int]:
    """Parse `"box:5201"` or `"[fe80::1%eth0]:5201"` into host and port. Raises InputError for other text."""
    match = re.fullmatch(
        r"(?:\[(?P<six>[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?)\]|(?P<host>[A-Za-z0-9_][A-Za-z0-9._-]*))(?::(?P<port>[0-9]{1,5}))?",
        text,
    )
    port = int(match["port"] or DEFAULT_PORT) if match else 0
    if match is None or not 0 < port < 65536:
        raise InputError(
            f"peer '{text}' is not HOST:PORT; give one such as box:5201 or [fd00::2]:5201, and run 'iperf3 "
            f"--server' there"
        )
    return match["six"] or match["host"], port


def traffic(log: str) -> dict[str, Any]:
    """Parse iperf3's JSON: the rate (bits/s) and the duration (s) of the traffic over the whole life of the
    load, and the number of streams. All three are None if iperf3 did not report them.
    """
    nothing: dict[str, Any] = {"bits_per_second": None, "network_s": None, "streams": None}
    start = log.find("{")
    if start < 0:
        return nothing
    try:
        document, _ = json.JSONDecoder().raw_decode(log, start)
        end = document["end"]
        totals = [end["sum_sent"], end["sum_received"]]
        total = max(totals, key=lambda t: t["bytes"])
        return {
            "bits_per_second": float(total["bits_per_second"]),
            "network_s": float(total["seconds"]),
            "streams": len(end["streams"]),
        }
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return nothing


def connected(port: int) -> Callable[[LoadTarget, Sequence[ProcessStat]], bool]:
    """Return a test of whether iperf3 has every client's connection to `port` and the control connection."""

    def all_connected(target: LoadTarget, processes: Sequence[ProcessStat]) -> bool:
        # /proc/PID/net/tcp shows PID's namespace; 01 is ESTABLISHED.
        pids = [process.pid for process in processes if process.name.startswith("iperf3")]
        files = target.read([f"/proc/{pid}/net/{table}" for pid in pids for table in ("tcp", "tcp6")])
        return any(text.count(f":{port:04X} 01 ") > CLIENTS for text in files.texts())

    return all_connected


def free_port(context: LoadContext) -> int:
    """Return a free TCP port of the target above the ephemeral range."""
    files = context.target.read(["/proc/net/tcp", "/proc/net/tcp6"])
    used = {int(port, 16) for text in files.texts() for port in re.findall(r":([0-9A-F]{4}) ", text)}
    return secrets.choice([port for port in range(61000, 65536) if port not in used])


def _part(argv: list[str], port: int, processes: int, *notes: str, **where: str) -> PartSpec:
    """Return the only part of the load. `where`: what the traffic goes over."""
    requested_rates = {
        "clients": CLIENTS,
        "block_bytes": BLOCK_BYTES,
        "bits_per_second": CLIENTS * BITS_PER_SECOND_A_CLIENT,
    }
    return PartSpec(
        "iperf3",
        argv,
        {**requested_rates, **where},
        ready=("iperf3", processes),
        settled=connected(port),
        reached=traffic,
        notes=notes,
    )


class Network(Load):
    """Runs iperf3 between two network namespaces, over the loopback if these are refused, or with a peer."""

    name = "network"
    programs: ClassVar[tuple[str, ...]] = ("iperf3",)
    packages: ClassVar[dict[str, str]] = {"iperf3": "iperf3"}

    def parts(self, context: LoadContext) -> list[PartSpec]:
        """Return one part: a server and clients, or only the clients of a peer.

        Raises InputError if the peer is not HOST:PORT.
        """
        amount = ["--parallel", str(CLIENTS), "--bitrate", str(BITS_PER_SECOND_A_CLIENT)]
        amount += ["--length", str(BLOCK_BYTES), "--interval", "0", "--json"]
        amount += ["--time", str(min(context.bound_s, LONGEST_S))]
        if context.peer is not None:
            host, port = parse_peer(context.peer)
            # As in the paper, the target is the side that sends.
            argv = ["iperf3", "--client", host, "--port", str(port), *amount]
            return [_part(argv, port, 1, over="peer", peer=f"{host}:{port}")]
        namespace = self._namespace(context)
        if namespace is not None:
            command, tools = namespace
            shell = [*command, "sh", "-c", VETH + CLIENT, "sh", *tools, str(DEFAULT_PORT)]
            argv = [*shell, "--client", "198.18.0.1", "--reverse", *amount]
            note = f"load network runs between two network namespaces joined by a veth pair; {COSTS_LITTLE}"
            return [_part(argv, DEFAULT_PORT, 2, note, over="veth")]
        port = free_port(context)
        shell = ["sh", "-c", LOOPBACK + CLIENT, "sh", str(port)]
        argv = [*shell, "--client", "127.0.0.1", "--reverse", *amount]
        note = (
            "load network runs over the loopback interface, because this machine cannot join two network "
            f"namespaces by a veth pair; {COSTS_LITTLE}"
        )
        return [_part(argv, port, 2, note, over="loopback")]

    @staticmethod
    def _namespace(context: LoadContext) -> tuple[list[str], list[str]] | None:
        """Return the command that makes a network namespace here, and the paths of TOOLS; None if the target
        allows no namespace with a veth pair.
        """
        tools = [path for tool in TOOLS if (path := context.target.which(tool)) is not None]
        if len(tools) < len(TOOLS):
            return None
        for options in NAMESPACES:
            command = [tools[-1], *options]
            if (
                context.target.run([*command, "sh", "-c", VETH_TRIAL, "sh", tools[0]], timeout_s=5).returncode
                == 0
            ):
                return command, tools
        return None
