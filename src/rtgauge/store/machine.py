# SPDX-License-Identifier: MIT
"""Which machine a record is of, whatever its host name was."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.system.identity import SHARED

if TYPE_CHECKING:
    from rtgauge.record.facts import Facts

OWN_NAME, ADDRESS = "name", "address"


@dataclass(frozen=True)
class Machine:
    """`key`: `SOURCE:...`; `shared`: machines of one image may have it too. `host`: only shown."""

    key: str
    source: str
    shared: bool
    host: str


def machine_of(facts: Facts, target: str, name: str | None = None) -> Machine:
    """The machine with these facts, which the run called `target`; `name`: what the user calls it.

    Without a serial number the address of the target is a part of the key: boards of one image at different
    addresses stay apart. A local machine then also has its host name in it.
    """
    host = facts.host or target
    if name is not None:
        return Machine(f"{OWN_NAME}:{name}", OWN_NAME, shared=False, host=host)
    source, number = facts.identity.source, facts.identity.hash
    if source is not None and number is not None and source != SHARED:
        return Machine(f"{source}:{number}", source, shared=False, host=host)
    where = f"{target}\0{host}" if target == "local" else target
    if number is not None:
        both = hashlib.sha256(f"{number}\0{where}".encode(errors="replace")).hexdigest()[:32]
        return Machine(f"{SHARED}:{both}", SHARED, shared=True, host=host)
    return Machine(f"{ADDRESS}:{host if target == 'local' else target}", ADDRESS, shared=True, host=host)
