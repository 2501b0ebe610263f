# SPDX-License-Identifier: MIT
"""A guest that runs, for whoever wants to reach it."""

from __future__ import annotations

import sys

from rtgauge.errors import InputError
from rtgauge.lab.added import find_guest
from rtgauge.lab.boot import boot
from rtgauge.lab.image import find_image
from rtgauge.lab.qemu import BootOptions
from rtgauge.lab.running import Running, find_running


def running_guest(name: str) -> Running:
    """The guest's machine. Raises InputError where it does not run."""
    running = find_running(find_guest(name).name)
    if running is None:
        raise InputError(f"lab:{name} does not run: rtgauge lab boot {name}")
    return running


def ready_guest(name: str) -> Running:
    """The guest's machine, booted where it does not run. Raises InputError where there is no image, MeasureError where it does not come up."""
    guest = find_guest(name)
    running = find_running(name)
    if running is not None:
        return running
    image = find_image(guest)
    if image is None:
        raise InputError(f"lab:{name} is not built yet: rtgauge lab build {name}")
    running = boot(guest, image, BootOptions(), _say, or_running=True)
    _say(f"lab:{name} was booted in {running.boot_s} s and goes on running; rtgauge lab stop {name} ends it")
    return running


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
