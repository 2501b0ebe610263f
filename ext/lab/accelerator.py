# SPDX-License-Identifier: MIT
"""Finds out whether KVM works.

A guest can hang although /dev/kvm exists, so one is booted with a time limit, and the result is cached.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rtgauge.record.files import write_whole
from rtgauge.user_cache import private_folder
from rtgauge_ext.lab import paths
from rtgauge_ext.lab.disk import make_empty_disk
from rtgauge_ext.lab.guest import Guest
from rtgauge_ext.lab.qemu import Accelerator, BootOptions, command, same_architecture

if TYPE_CHECKING:
    from rtgauge_ext.lab.image import Image

TRIAL_S = 20.0
KILL_S = 5.0
KVM = "/dev/kvm"
READY = b"rtgauge-lab: ready "


def choose(guest: Guest, image: Image, notify: Callable[[str], None]) -> Accelerator:
    """Return kvm if a trial boot succeeds, else tcg (emulation). `notify` gets progress messages."""
    if not same_architecture(guest.architecture) or not os.access(KVM, os.R_OK | os.W_OK):
        return "tcg"
    cache = paths.cache() / "kvm.json"
    # the result is valid for this boot of the host and this kernel of the guest
    key = (
        f"{os.uname().release} {Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {image.release}"
    )
    try:
        results: dict[str, bool] = dict(json.loads(cache.read_text()))
    except (OSError, ValueError, TypeError):
        results = {}
    if key not in results:
        notify(f"testing {KVM} (once, at most {TRIAL_S:g} s)")
        results[key] = _trial_boot(guest, image)
        private_folder(cache.parent)
        write_whole(cache, (json.dumps(results) + "\n").encode())
        if not results[key]:
            notify(f"the guest is emulated, because its kernel does not boot with {KVM}")
    return "kvm" if results[key] else "tcg"


def _trial_boot(guest: Guest, image: Image) -> bool:
    """Return whether the guest boots with KVM within `TRIAL_S`."""
    with tempfile.TemporaryDirectory(prefix="rtgauge-kvm-") as name:
        folder = Path(name)
        make_empty_disk(folder / "disk", 64)
        options = BootOptions(smp="2", memory_mib=512)
        arguments = command(guest, image, options, folder=folder, port=0, accelerator="kvm")
        arguments.remove("-daemonize")
        process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            return _becomes_ready(folder / "console.log", process)
        finally:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(KILL_S)


def _becomes_ready(console: Path, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + TRIAL_S
    while process.poll() is None and time.monotonic() < deadline:
        if console.exists() and READY in console.read_bytes():
            return True
        time.sleep(0.1)
    return False
