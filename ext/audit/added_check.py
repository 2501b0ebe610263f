# SPDX-License-Identifier: MIT
"""What another extension adds to `rtgauge audit`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from rtgauge.cli.extension_options import AddedOptions


class Audited(AddedOptions):
    """For `audit`: checks something else instead of the rules."""

    @abstractmethod
    def check(self) -> Callable[[str], int] | None:
        """Return what checks a target, prints what it finds, and returns the exit status; None if the options
        do not ask for it.
        """
