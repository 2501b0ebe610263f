# SPDX-License-Identifier: MIT
"""A guest that runs, for whoever wants to reach it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.lab.added import find_guest
from rtgauge.lab.boot_guest import boot
from rtgauge.lab.image import find_image
from rtgauge.lab.qemu import BootOptions
from rtgauge.lab.running_guests import Running, find_running

if TYPE_CHECKING:
    from rtgauge.lab.guest import Guest
    from rtgauge.lab.image import Image


def running_guest(name: str) -> Running:
    """The guest's machine. Raises InputError where it does not run."""
    running = find_running(find_guest(name).name)
    if running is None:
        raise InputError(f"lab:{name} does not run: rtgauge lab boot {name}")
    return running


def image_of(guest: Guest) -> Image:
    """What the guest boots from. Raises InputError where it is not built."""
    image = find_image(guest)
    if image is None:
        raise InputError(f"lab:{guest.name} is not built yet: rtgauge lab build {guest.name}")
    return image


def ready_guest(name: str) -> Running:
    """The guest's machine, booted where it does not run. Raises InputError where there is no image, MeasureError where it does not come up."""
    guest = find_guest(name)
    running = find_running(name)
    if running is not None:
        return running
    image = image_of(guest)
    _say(f"lab:{name} does not run: booting it")
    running = boot(guest, image, BootOptions(), _say, or_running=True)
    _say(f"lab:{name} was booted in {running.boot_s} s and goes on running; rtgauge lab stop {name} ends it")
    return running


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
