# SPDX-License-Identifier: MIT
"""What a guest of the lab is: a name, an architecture and a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Architecture = Literal["x86_64", "aarch64"]
NAME = r"[a-z0-9][a-z0-9-]{0,31}"
SUITE = "trixie"
"""The Debian release that the guests are made of: the first whose kernel source holds PREEMPT_RT itself."""


class Guest(BaseModel):
    """A guest that can be built: Debian's own kernel (`package`), or one of the user's (`kernel`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=f"^{NAME}$")
    architecture: Architecture
    about: str
    package: str | None = None
    kernel: Path | None = None
    modules: Path | None = None
    overlay: Path | None = None
    append: str = ""
    """Words for the kernel's command line at every boot."""


def _debian(name: str, architecture: Architecture, package: str, about: str) -> Guest:
    return Guest(name=name, architecture=architecture, package=package, about=f"Debian {SUITE}, {about}")


BUILT_IN = {
    guest.name: guest
    for guest in (
        _debian("debian", "x86_64", "linux-image-amd64", "stock kernel, x86-64"),
        _debian("debian-rt", "x86_64", "linux-image-rt-amd64", "PREEMPT_RT kernel, x86-64"),
        _debian("debian-arm64", "aarch64", "linux-image-arm64", "stock kernel, arm64"),
        _debian("debian-rt-arm64", "aarch64", "linux-image-rt-arm64", "PREEMPT_RT kernel, arm64"),
    )
}
