# SPDX-License-Identifier: MIT
"""A guest that is booted again and again with other words on its kernel's command line, and left as it was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rtgauge.lab.access import image_of, running_guest
from rtgauge.lab.added import find_guest
from rtgauge.lab.boot_guest import boot_again
from rtgauge.lab.qemu import BootOptions
from rtgauge.lab.running_guests import console_of, find_running

if TYPE_CHECKING:
    from collections.abc import Callable

    from rtgauge.lab.qemu import Accelerator


MOST_CONSOLE_BYTES = 1 << 18


class Reboots:
    """A guest that runs now."""

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        """`say` is told what takes long. Raises InputError for a guest that does not run."""
        self._guest = find_guest(name)
        self._image = image_of(self._guest)
        self._say = say
        self._found = running_guest(name)

    @property
    def append(self) -> str:
        """The words that it was booted with when it was found."""
        return self._found.append

    def boot(self, append: str) -> None:
        """Boot it with these words; processors, memory and port as it was found. Raises MeasureError where it does not come up."""
        found = self._found
        # what runs there runs with an accelerator that works
        accelerator = cast("Accelerator", found.accelerator)
        options = BootOptions(append=append, smp=found.smp, memory_mib=found.memory_mib, port=found.asked_port, accelerator=accelerator)
        boot_again(self._guest, self._image, options, self._say)

    def console(self) -> bytes:
        """The end of what it wrote on its console since it was booted last; empty where that cannot be read."""
        try:
            return console_of(self._guest.name).read_bytes()[-MOST_CONSOLE_BYTES:]
        except OSError:
            return b""

    def leave(self) -> None:
        """Booted with the words that it was found with. Raises MeasureError where it does not come up."""
        now = find_running(self._guest.name)
        if now is None or now.append != self._found.append:
            self.boot(self._found.append)
