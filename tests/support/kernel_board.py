# SPDX-License-Identifier: MIT
"""A target with a kernel that loads modules; what runs on it runs here."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

from rtgauge.target.file_batch import Files
from rtgauge.target.target_protocol import Completed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

RELEASE = "6.12.1-test"
ABI = "1"
"""RTGAUGE_KMOD_ABI of kmod/rtgauge_kmod.h."""
PLAIN = {
    "/proc/sys/kernel/osrelease": RELEASE + "\n",
    "/proc/version": "Linux version 6.12.1-test\n",
    "/proc/modules": "",
    "/proc/sys/kernel/modules_disabled": "0\n",
    "/sys/module/module/parameters/sig_enforce": "N\n",
    "/sys/kernel/security/lockdown": "[none] integrity confidentiality\n",
}


class Board:
    """A target with these files and folders; what runs on it runs here."""

    def __init__(
        self,
        files: dict[str, str | None],
        folders: dict[str, list[str]] | None = None,
        name: str = "ssh://board",
    ) -> None:
        self.files, self.folders, self.name, self.machine = files, folders or {}, name, "x86_64"
        self.ran: list[list[str]] = []

    def read(self, paths: Iterable[str]) -> Files:
        answers: dict[str, dict[str, Any]] = {}
        for path in paths:
            text = self.files.get(path)
            answers[path] = (
                {"directory": self.folders[path]}
                if path in self.folders
                else {"error": "ENOENT"}
                if text is None
                else {"text": text}
            )
        return Files(answers)

    def which(self, program: str) -> str | None:
        return f"/usr/bin/{program}"

    def run(self, argv: Sequence[str], timeout_s: float) -> Completed:
        self.ran.append(list(argv))
        if "modinfo" in argv[0]:
            return Completed(0, f"{ABI}\n")
        completed = subprocess.run(argv, capture_output=True, text=True, check=False)
        return Completed(completed.returncode, completed.stdout)

    def put(self, file: Path) -> str:
        return str(file)

    def files_folder(self, folder: Path) -> str:
        return str(folder)

    def fetch(self, folder: Path) -> None:
        pass
