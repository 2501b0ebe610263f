# SPDX-License-Identifier: MIT
"""What a service needs to know of the kernel's persistent trace ring, to arm it at each boot."""

from __future__ import annotations

from rtgauge.cli.shared_options import target_option

NAME = "boot_map"
INFO = tuple(
    f"{root}/instances/{NAME}/last_boot_info" for root in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
)
"""One of these exists if the kernel has the ring."""
PARAMETERS = f"reserve_mem=20M:32M:trace trace_instance={NAME}@trace"
"""The boot parameters of a kernel with a ring (README.md)."""
ARM = ("last-boot", "--arm")
"""The engine's words."""


def service_words(*, has_ring: bool, target: str) -> str:
    """Return what a service that arms the ring at each boot, if there is one, will know after a crash."""
    if has_ring:
        return (
            "it also records what runs before a crash; see it at the next boot with: rtgauge last-boot"
            f"{target_option(target)}"
        )
    return (
        "it cannot record what runs before a crash, because the kernel has no persistent ring; to add one, "
        f"boot Linux 6.12 or newer with {PARAMETERS}, and install the service again"
    )
