# SPDX-License-Identifier: MIT
"""Which modules a target's kernel can load, and why it refused one. The runner inserts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.system.deployment.apply import Refused

if TYPE_CHECKING:
    from rtgauge.target.target_protocol import Target

OWN = "RTGAUGE_KMOD"
"""The variable for a folder of rtgauge's own modules (kmod/) that were built elsewhere, in subfolders by
release for several kernels.
"""
OWN_HELP = "docs/kmod.md"
"""Where the user reads how to build rtgauge's own modules."""
RELEASE = "/proc/sys/kernel/osrelease"
VERSION = "/proc/version"
LIST = "/proc/modules"
DISABLED = "/proc/sys/kernel/modules_disabled"
ENFORCED = "/sys/module/module/parameters/sig_enforce"
LOCKDOWN = "/sys/kernel/security/lockdown"


class NoModules(Refused):
    """The modules cannot be used on this kernel. The message has the cause and the remedy."""

    what = "kernel modules"

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, f"{reason}; {remedy}")
        self.remedy = remedy


@dataclass(frozen=True)
class ModuleKernel:
    """The properties of a target's kernel that decide which modules it can load."""

    release: str
    version: str
    machine: str
    signed_only: bool

    @classmethod
    def of(
        cls, target: Target, instead: str = "measure in user space over a path other than wire"
    ) -> ModuleKernel:
        """Read the properties from the target. Raises NoModules if its kernel can load no module at all.

        `instead`: what the user can do without modules.
        """
        files = target.read([RELEASE, VERSION, LIST, DISABLED, ENFORCED, LOCKDOWN])
        if files.error(LIST) is not None:
            raise NoModules(
                "this kernel cannot load modules",
                f"{instead}, or boot a kernel with CONFIG_MODULES",
            )
        if files.text(DISABLED) == "1":
            raise NoModules(
                "kernel.modules_disabled is 1, so no module can be loaded until the next boot",
                "reboot, and load the modules before kernel.modules_disabled is set",
            )
        lockdown = files.text(LOCKDOWN) or ""
        locked_down = any(word in lockdown for word in ("[integrity]", "[confidentiality]"))
        return cls(
            files.text(RELEASE) or "",
            files.text(VERSION) or "",
            target.machine,
            signed_only=locked_down or files.text(ENFORCED) == "Y",
        )


def refusal(error: str, file: str, kernel: ModuleKernel, module_help: str = OWN_HELP) -> NoModules:
    """Return the error that explains why the kernel refused the module `file`. `error`: the name of the errno
    of finit_module(2). `module_help`: where the user reads how to build the module.
    """
    name = file.rpartition("/")[2].partition(".")[0]
    folder = f" and name their folder: {OWN}=DIR ({OWN_HELP})" if module_help == OWN_HELP else ""
    sign = f"sign the modules with a key that is enrolled on that machine{folder}, or turn off Secure Boot"
    if error in ("EKEYREJECTED", "ENOKEY") or (error == "EPERM" and kernel.signed_only):
        return NoModules("the kernel loads only modules that are signed (Secure Boot, lockdown)", sign)
    if error in ("EPERM", "EACCES"):
        return NoModules("this user may not load kernel modules", "run as root, outside of a container")
    if error == "ENOEXEC":
        reason = (
            f"the kernel refuses {name}, because it was built for a kernel other than {kernel.release} "
            f"(vermagic)"
        )
        return NoModules(reason, f"build the module again for this kernel (see {module_help})")
    if error == "ENOENT":
        return NoModules(
            f"the kernel refuses {name}, because the kernel lacks a function that the module needs",
            f"find the function's name with dmesg, and see {module_help}",
        )
    return NoModules(f"the kernel refuses {name} ({error})", "find the reason with dmesg")
