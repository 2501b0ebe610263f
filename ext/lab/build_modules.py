# SPDX-License-Identifier: MIT
"""Builds rtgauge's kernel modules for a guest on this machine, with Debian's headers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rtgauge.errors import MeasureError
from rtgauge.system.loadable_modules import OWN, NoModules
from rtgauge_ext.lab.guest import find_guest
from rtgauge_ext.lab.headers import headers_tree
from rtgauge_ext.lab.packages import DEBIAN


def build_modules(
    name: str, release: str, sources: Path, folder: Path, notify: Callable[[str], None]
) -> None:
    """Build the modules in `sources` for the guest's kernel `release` into `folder`.

    Raises NoModules, with cause and remedy, if that is impossible.
    """
    architecture = find_guest(name).architecture
    none = NoModules(
        f"Debian does not provide headers for the kernel {release} of lab:{name}",
        f"rebuild the guest with Debian's newest kernel (rtgauge lab build {name} --fresh) or, for your own "
        f"kernel, name the folder with the modules ({OWN}=DIR)",
    )
    if not release.endswith(f"-{DEBIAN[architecture]}"):
        raise none  # not a kernel of Debian: to fetch its headers would take minutes, for nothing
    try:
        tree = headers_tree(architecture, notify)
        if release not in tree.releases():
            tree = headers_tree(architecture, notify, fresh=True)
        if release not in tree.releases():
            raise none
        tree.make(release, sources, folder)
    except NoModules:
        raise
    except MeasureError as error:
        raise NoModules("the kernel modules for the guest could not be built", str(error)) from None
