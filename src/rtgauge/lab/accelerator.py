# SPDX-License-Identifier: MIT
"""Whether KVM works here. A /dev/kvm can be there and hang a kernel: the guest's own is booted once, with a time limit, and the answer is kept."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rtgauge.lab import paths
from rtgauge.lab.disk import make_empty_disk
from rtgauge.lab.qemu import BootOptions, command, same_architecture

if TYPE_CHECKING:
    from collections.abc import Callable

    from rtgauge.lab.guest import Guest
    from rtgauge.lab.image import Image
    from rtgauge.lab.qemu import Accelerator

TRIAL_S = 20.0
KILL_S = 5.0
KVM = "/dev/kvm"
READY = b"rtgauge-lab: ready "


def choose(guest: Guest, image: Image, say: Callable[[str], None]) -> Accelerator:
    """How the guest's processor is made: by KVM where a trial boot has come up with it, else by software."""
    if not same_architecture(guest.architecture) or not os.access(KVM, os.R_OK | os.W_OK):
        return "tcg"
    kept = paths.cache() / "kvm.json"
    # another kernel on this machine, or in the guest, is another answer
    asked = f"{os.uname().release} {Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {image.release}"
    try:
        answers: dict[str, bool] = dict(json.loads(kept.read_text()))
    except (OSError, ValueError, TypeError):
        answers = {}
    if asked not in answers:
        say(f"trying whether {KVM} works (at most {TRIAL_S:g} s; once)")
        answers[asked] = _comes_up(guest, image)
        paths.private(kept.parent)
        kept.write_text(json.dumps(answers) + "\n")
        if not answers[asked]:
            say(f"{KVM} is there and does not boot this kernel: the guest is emulated")
    return "kvm" if answers[asked] else "tcg"


def _comes_up(guest: Guest, image: Image) -> bool:
    """Boot with KVM until the guest says so on its console, or not within the time."""
    with tempfile.TemporaryDirectory(prefix="rtgauge-kvm-") as name:
        folder = Path(name)
        make_empty_disk(folder / "disk", 64)
        options = BootOptions(smp="2", memory_mib=512)
        words = command(guest, image, options, folder=folder, port=0, accelerator="kvm")
        words.remove("-daemonize")
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return _says_ready(folder / "console.log", process)
        finally:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(KILL_S)


def _says_ready(console: Path, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + TRIAL_S
    while process.poll() is None and time.monotonic() < deadline:
        if console.exists() and READY in console.read_bytes():
            return True
        time.sleep(0.1)
    return False
