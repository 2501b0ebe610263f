# SPDX-License-Identifier: MIT
"""A machine to log in to: an sshd of our own on the loopback, and behind it namespaces that tell it from this
machine.

Its lock (/run/rtgauge), its host name and its files are its own. With `busybox` it has nothing but BusyBox.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tests.support.patience import PATIENCE_S

TREE = ("proc", "sys", "dev", "tmp", "var", "root", "bin", "run")


def free_port() -> int:
    """A TCP port that nobody uses now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def make_key(path: Path) -> Path:
    """A key without a passphrase."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", path], check=True)
    return path


class Machine:
    """Use as a context.

    `tmp`: mount options of its /tmp. `others`: those of /var/tmp and the home folder. `script`: what else is
    done as it is set up ($1 is its folder).
    `become`: a command that those who log in become somebody else by. `noise`: what their login shell prints.
    """

    def __init__(
        self,
        folder: Path,
        name: str = "board",
        *,
        busybox: bool = True,
        tmp: str = "size=16m",
        others: str = "size=16m",
        script: str = "",
        become: str = "",
        noise: str = "",
    ) -> None:
        self.folder = folder / name
        self.folder.mkdir(parents=True)
        self.name = name
        self.port = free_port()
        self.key = make_key(self.folder / "key")
        self.host_key = make_key(self.folder / "host_key")
        self._busybox, self._tmp, self._others, self._script, self._become, self._noise = (
            busybox,
            tmp,
            others,
            script,
            become,
            noise,
        )
        self._space: subprocess.Popen[bytes] | None = None
        self._sshd: subprocess.Popen[bytes] | None = None

    @property
    def target(self) -> str:
        """Its name for --target."""
        return f"ssh://root@127.0.0.1:{self.port}"

    @property
    def inside(self) -> list[str]:
        """The words before a command that runs there."""
        assert self._space is not None
        return ["nsenter", "-t", str(self._space.pid), "--net", "--uts", "--mount"]

    def __enter__(self) -> Self:
        self._make_space()
        self.start_sshd()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_sshd()
        if self._space is not None:
            self._space.kill()
            self._space.wait()

    def _make_space(self) -> None:
        root = self.folder / "root"
        lines = [
            "set -eu",
            "mount --make-rprivate /",
            f"hostname {self.name}",
            "ip link set lo up 2>/dev/null || true",
        ]
        if self._busybox:
            for part in TREE:
                (root / part).mkdir(parents=True)
            shutil.copy("/bin/busybox", root / "bin" / "busybox")
            lines += [f'mount --rbind /{part} "$1/root/{part}"' for part in ("proc", "sys", "dev")]
            lines += ['chroot "$1/root" /bin/busybox --install -s /bin', 'mkdir "$1/root/var/tmp"']
            lines += [
                f'mount -t tmpfs -o {self._others} tmpfs "$1/root/{part}"' for part in ("root", "var/tmp")
            ]
            lines += [f'mount -t tmpfs -o {self._tmp} tmpfs "$1/root/tmp"']
        else:
            lines += ["mkdir -p /run/rtgauge", "mount -t tmpfs -o mode=755 tmpfs /run/rtgauge"]
        lines += [self._script, "echo ready", "exec sleep 100000"]
        command = [
            "unshare",
            "--net",
            "--uts",
            "--mount",
            "sh",
            "-c",
            "\n".join(lines),
            "sh",
            str(self.folder),
        ]
        with (self.folder / "space.log").open("wb") as log:
            self._space = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log = self.folder / "space.log"
        self._wait(lambda: log.read_text().endswith("ready\n"), log)

    def start_sshd(self) -> None:
        """Let it answer."""
        assert self._space is not None
        Path("/run/sshd").mkdir(exist_ok=True)
        shell = f"chroot {self.folder}/root /bin/sh" if self._busybox else "sh"
        lines = [
            "#!/bin/sh",
            *([f"echo '{self._noise}'"] if self._noise else []),
            f'exec {" ".join(self.inside)} {self._become} {shell} -c "$SSH_ORIGINAL_COMMAND"',
            "",
        ]
        (self.folder / "enter").write_text("\n".join(lines))
        (self.folder / "enter").chmod(0o755)
        config = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": self.host_key,
            "AuthorizedKeysFile": f"{self.key}.pub",
            "StrictModes": "no",
            "UsePAM": "no",
            "PidFile": "none",
            "PermitRootLogin": "yes",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "ForceCommand": self.folder / "enter",
        }
        (self.folder / "sshd_config").write_text(
            "".join(f"{name} {value}\n" for name, value in config.items())
        )
        log = self.folder / "sshd.log"
        self._sshd = subprocess.Popen(
            ["/usr/sbin/sshd", "-D", "-E", str(log), "-f", str(self.folder / "sshd_config")],
            stdin=subprocess.DEVNULL,
        )
        self._wait(lambda: "listening" in log.read_text() if log.exists() else False, log)

    def wire(self) -> tuple[str, str]:
        """A cable between this machine and it: the address here, and there. It goes with the machine."""
        assert self._space is not None
        net = f"10.213.{self.port >> 8}.{(self.port & 0xFC)}".rsplit(".", 1)
        here, there = f"{net[0]}.{int(net[1]) + 1}", f"{net[0]}.{int(net[1]) + 2}"
        name, inside = f"rg{self.port}", ["nsenter", "-t", str(self._space.pid), "--net"]
        for command in (
            [
                "ip",
                "link",
                "add",
                name,
                "type",
                "veth",
                "peer",
                "name",
                "cable",
                "netns",
                str(self._space.pid),
            ],
            ["ip", "address", "add", f"{here}/30", "dev", name],
            ["ip", "link", "set", name, "up"],
            [*inside, "ip", "address", "add", f"{there}/30", "dev", "cable"],
            [*inside, "ip", "link", "set", "cable", "up"],
        ):
            subprocess.run(command, check=True)
        return here, there

    def stop_sshd(self) -> None:
        """No new connections, and an end to those that are there, in the middle of whatever they do."""
        if self._sshd is None:
            return
        self._sshd.kill()
        self._sshd.wait()
        (self.folder / "sshd.log").unlink()
        self.break_connections()
        self._sshd = None

    def break_connections(self) -> None:
        """Kill -9 what serves the connections; what runs behind them is not touched."""
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                command = (entry / "cmdline").read_bytes()
                sockets = (
                    {str(link.readlink()) for link in (entry / "fd").iterdir()}
                    if command.startswith(b"sshd")
                    else set()
                )
            except OSError:
                continue
            if sockets & self._connections():
                os.kill(int(entry.name), signal.SIGKILL)

    def _connections(self) -> set[str]:
        """The sockets of its port, as /proc/PID/fd names them."""
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return {
            f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{self.port:04X}") and row[3] == "01"
        }

    def client(self) -> Path:
        """A folder for PATH whose `ssh` knows this machine; nothing of the user's own configuration is
        used.
        """
        return client(self.folder, [self])

    def run(self, command: str) -> str:
        """What a command prints there."""
        completed = subprocess.run(
            [self.client() / "ssh", "-p", str(self.port), "root@127.0.0.1", command],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return completed.stdout.removeprefix(f"{self._noise}\n" if self._noise else "")

    def _wait(self, condition: Callable[[], bool], log: Path) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, log.read_text()
            assert self._space is None or self._space.poll() is None, log.read_text()
            time.sleep(0.02)


def client(folder: Path, machines: list[Machine], extra: str = "") -> Path:
    """A folder for PATH with an `ssh` that knows these machines and has their keys."""
    place = folder / "client"
    place.mkdir(exist_ok=True)
    known = "".join(
        f"[127.0.0.1]:{machine.port} {machine.host_key.with_suffix('.pub').read_text()}"
        for machine in machines
    )
    (place / "known_hosts").write_text(known)
    keys = "".join(f"IdentityFile {machine.key}\n" for machine in machines)
    (place / "config").write_text(
        f"{extra}UserKnownHostsFile {place}/known_hosts\nGlobalKnownHostsFile none\nIdentitiesOnly "
        f"yes\nIdentityAgent none\n{keys}"
    )
    (place / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {place}/config "$@"\n')
    (place / "ssh").chmod(0o755)
    return place
