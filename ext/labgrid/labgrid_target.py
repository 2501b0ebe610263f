# SPDX-License-Identifier: MIT
"""Boards of labgrid as targets: `labgrid:PLACE` or `labgrid:TAG=VALUE`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.target.kind import TargetKind

if TYPE_CHECKING:
    from rtgauge.target.ssh_address import SshAddress

TAG = r"[A-Za-z][A-Za-z0-9_]{0,63}=[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"
PLACE = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_./-]{{0,127}}|{TAG}(?:,{TAG}){{0,7}}", re.ASCII)


class LabgridPlaces(TargetKind):
    """Places of a coordinator, or tags (`TAG=VALUE[,TAG=VALUE]`) of one. A place is acquired before use."""

    form = "labgrid:PLACE"

    def check(self, name: str, shown: str) -> None:
        """Raise InputError if this is neither the name of a place nor tags."""
        if PLACE.fullmatch(name) is None:
            raise InputError(
                f"target '{shown}' is not a place of labgrid; give labgrid:PLACE or labgrid:TAG=VALUE (list "
                f"the places with: labgrid-client places)"
            )

    def located(self, address: SshAddress) -> SshAddress:
        """Return the board's address, after acquiring its place."""
        from rtgauge_ext.labgrid.places import board

        service = board(address.own_name)
        return replace(
            address,
            host=service.host,
            user=service.user,
            port=service.port,
            jump=service.proxy,
            options=service.options,
        )

    def hold(self, names: Sequence[str], wait_s: float) -> None:
        """Acquire these places until this process ends."""
        from rtgauge_ext.labgrid.places import hold_places

        hold_places(names, wait_s)

    def login(self, address: SshAddress) -> str:
        """Return ssh's command line, or the console's if the board has no network."""
        return f"labgrid-client -p {address.own_name} console" if address.options else super().login(address)


LABGRID = LabgridPlaces()
