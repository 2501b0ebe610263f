# SPDX-License-Identifier: MIT
"""A coordinator and an exporter of labgrid on the loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.support.cli import wait_until
from tests.support.machine import free_port

if TYPE_CHECKING:
    from collections.abc import Mapping

BIN = Path(sys.executable).parent
SERVICE = "NetworkService: {{address: 127.0.0.1, username: root, port: {port}}}"
BOARD = """
{name}:
  {resource}
  NetworkPowerPort: {{model: simplerest, host: "http://127.0.0.1:{power}/{name}/{{value}}", index: 1}}
"""


class Labgrid:
    """Use as a context. `boards`: name of each place -> port of its SSH server, or its resource; `power`: port
    of the power switch; `isolated`: resources are reached through a proxy, this host.
    """

    def __init__(
        self, folder: Path, boards: Mapping[str, int | str], power: int, *, isolated: bool = False
    ) -> None:
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        self._boards = boards
        self._services: list[subprocess.Popen[bytes]] = []
        self._exporter = ["-c", self.address, "-n", "desk", *(["-i"] if isolated else []), "boards.yaml"]
        text = ""
        for name, board in boards.items():
            resource = board if isinstance(board, str) else SERVICE.format(port=board)
            text += BOARD.format(name=name, resource=resource, power=power)
        (folder / "boards.yaml").write_text(text)

    def __enter__(self) -> Self:
        self.start()
        for name in self._boards:
            self.client("-p", name, "create")
            self.client("-p", name, "add-match", f"*/{name}/*")
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start both; a coordinator that was there before knows its places from their file."""
        with (self.folder / "labgrid.log").open("ab") as log:
            self._services = [
                subprocess.Popen([BIN / name, *words], cwd=self.folder, stdout=log, stderr=log)
                for name, words in (
                    ("labgrid-coordinator", ("-l", self.address)),
                    ("labgrid-exporter", self._exporter),
                )
            ]
        wait_until(self._exported, "the exporter")

    def stop(self) -> None:
        """kill -9 of both."""
        for service in self._services:
            service.kill()
            service.wait()

    def _exported(self) -> bool:
        if self._services[1].poll() is not None:  # it was faster than the coordinator
            with (self.folder / "labgrid.log").open("ab") as log:
                self._services[1] = subprocess.Popen(
                    [BIN / "labgrid-exporter", *self._exporter], cwd=self.folder, stdout=log, stderr=log
                )
        completed = self._client("resources")
        return completed.stdout.count("PowerPort") == len(self._boards)

    def _client(self, *words: str, user: str = "somebody") -> subprocess.CompletedProcess[str]:
        own = {"LG_COORDINATOR": self.address, "LG_USERNAME": user, "LG_HOSTNAME": "desk"}
        return subprocess.run(
            [BIN / "labgrid-client", *words],
            env=os.environ | own,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def client(self, *words: str, user: str = "somebody") -> str:
        """What `labgrid-client` of another user prints."""
        completed = self._client(*words, user=user)
        assert completed.returncode == 0, completed.stderr
        return completed.stdout

    def holders(self) -> list[str]:
        """Who holds places, one for each."""
        return [line.split()[0] for line in self.client("who").splitlines()[1:]]
