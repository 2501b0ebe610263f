# SPDX-License-Identifier: MIT
"""`rtgauge lab`: real kernels in virtual machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rtgauge.lab.qemu import Accelerator, BootOptions

HELP = """Real kernels in virtual machines: Debian's stock and PREEMPT_RT kernels, x86-64 and arm64, and kernels of your own.

\b
Examples:
  rtgauge lab build debian-rt          fetch and put together, once
  rtgauge lab boot debian-rt --append "isolcpus=3 nohz_full=3"
  rtgauge probe wakeup --target lab:debian-rt
  rtgauge lab shell debian-rt
  rtgauge lab stop debian-rt

The times of an emulated guest are not those of a real machine: no verdict is based on them.
"""

app = typer.Typer(help=HELP, no_args_is_help=True, rich_markup_mode=None)
Name = Annotated[str, typer.Argument(metavar="NAME", help="A guest: debian, debian-rt, debian-arm64, debian-rt-arm64, or one that was added.")]


def _say(text: str) -> None:
    typer.echo(text, err=True)


@app.command("list")
def list_guests(json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False) -> None:
    """Say which guests there are, which are built, and which run."""
    from rtgauge.lab.guest import guests
    from rtgauge.lab.image import find_image
    from rtgauge.lab.running_guests import find_running

    rows = [(guest, find_image(guest), find_running(guest.name)) for guest in guests().values()]
    if json:
        from dataclasses import asdict
        from json import dumps

        listed = [
            {
                "name": guest.name,
                "architecture": guest.architecture,
                "about": guest.about,
                "kernel": image.release if image is not None else None,
                "running": asdict(running) if running is not None else None,
            }
            for guest, image, running in rows
        ]
        typer.echo(dumps(listed, indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "what", "kernel", "state", box=None, pad_edge=False)
    for guest, image, running in rows:
        state = "not built" if image is None else "built"
        if running is not None:
            how = "emulated" if running.accelerator == "tcg" else "KVM"
            state = f"runs, {how}, ssh port {running.port}" + (f", {running.append}" if running.append else "")
        table.add_row(guest.name, guest.about, image.release if image is not None else "", state)
    Console().print(table)


@app.command()
def build(name: Name, fresh: Annotated[bool, typer.Option("--fresh", help="Again, with Debian's newest packages.")] = False) -> None:
    """Fetch Debian's packages and put an image together. It is kept; nothing is done where it is there already."""
    from rtgauge.lab.guest import find_guest
    from rtgauge.lab.image import build as build_image

    image = build_image(find_guest(name), _say, fresh=fresh)
    _say(f"lab:{name} is built, kernel {image.release} ({image.folder})")


@app.command()
def boot(
    name: Name,
    append: Annotated[str, typer.Option(metavar="TEXT", help="Words for the kernel's command line, e.g. 'isolcpus=3 nosmt'.")] = "",
    smp: Annotated[str | None, typer.Option(metavar="TEXT", help="Processors as QEMU's -smp has them; x86-64: 4,cores=2,threads=2, arm64: 4.")] = None,
    memory: Annotated[int, typer.Option(min=256, max=1 << 20, metavar="MIB", help="The guest's memory in MiB.")] = 1024,
    port: Annotated[int | None, typer.Option(min=1, max=65535, metavar="N", help="Port on the loopback interface; by default a free one.")] = None,
    accel: Annotated[str, typer.Option(metavar="NAME", help="tcg (software), kvm, or auto: KVM where a trial boot shows that it works.")] = "auto",
) -> None:
    """Boot a guest and wait until it answers; it is built first where it is not yet."""
    options = _options(append, smp, memory, port, accel)
    from rtgauge.lab.boot_guest import boot as boot_guest
    from rtgauge.lab.guest import find_guest
    from rtgauge.lab.image import build as build_image

    guest = find_guest(name)
    image = build_image(guest, _say)
    _say(f"booting lab:{name}, kernel {image.release}")
    running = boot_guest(guest, image, options, _say)
    how = "emulated by software: its times are not those of a real machine" if running.accelerator == "tcg" else "with KVM"
    _say(f"lab:{name} is up after {running.boot_s} s, {how}")


def _options(append: str, smp: str | None, memory: int, port: int | None, accel: str) -> BootOptions:
    from rtgauge.errors import InputError
    from rtgauge.lab.qemu import BootOptions

    accelerators: dict[str, Accelerator | None] = {"auto": None, "tcg": "tcg", "kvm": "kvm"}
    if accel not in accelerators:
        raise InputError(f"--accel {accel[:40]}: write auto, tcg or kvm")
    return BootOptions(append=append, smp=smp, memory_mib=memory, port=port, accelerator=accelerators[accel])


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def shell(context: typer.Context, name: Name) -> None:
    """Log in to a guest that runs; words after the name are run there: one is a line for its shell, several are a program and its arguments.

    \b
    Examples:
      rtgauge lab shell debian-rt
      rtgauge lab shell debian-rt uname -a
      rtgauge lab shell debian-rt 'dmesg | tail'
    """
    import os
    import shlex

    from rtgauge.lab.running_guests import running_guest
    from rtgauge.lab.ssh import ssh_command

    command = ssh_command(name, running_guest(name).port)
    words = context.args if len(context.args) < 2 else [shlex.join(context.args)]
    os.execvp(command[0], [*command, *words])  # noqa: S606 - no shell: ssh takes the place of this process


@app.command()
def stop(name: Name) -> None:
    """Switch a guest off, in order where it answers."""
    from rtgauge.lab.guest import find_guest
    from rtgauge.lab.running_guests import stop as stop_guest

    _say(f"lab:{name} is off" if stop_guest(find_guest(name).name) else f"lab:{name} did not run")


@app.command()
def reset(name: Name) -> None:
    """Begin a guest anew at once, as after a power cut: what it had not written to its disk is lost."""
    from rtgauge.lab.running_guests import cut_power, running_guest

    cut_power(running_guest(name))
    _say(f"lab:{name} boots again")


@app.command("rm")
def remove(name: Name) -> None:
    """Remove a guest's image and disk; one that was added is forgotten."""
    from rtgauge.lab.guest import find_guest
    from rtgauge.lab.running_guests import remove as remove_guest

    gone = remove_guest(find_guest(name))
    _say(f"lab:{name}: removed {', '.join(gone)}" if gone else f"lab:{name}: there was nothing to remove")


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the guest is to be called.")],
    kernel: Annotated[Path, typer.Option(metavar="FILE", help="The kernel: a bzImage (x86-64) or an Image (arm64).")],
    modules: Annotated[Path | None, typer.Option(metavar="DIR", help="Modules (.ko): all below this folder are loaded at boot.")] = None,
    overlay: Annotated[Path | None, typer.Option(metavar="DIR", help="Files for the guest's root: DIR/etc/x becomes /etc/x.")] = None,
    append: Annotated[str, typer.Option(metavar="TEXT", help="Words for the kernel's command line at every boot.")] = "",
    arm64: Annotated[bool, typer.Option("--arm64", help="The kernel is for arm64.")] = False,
) -> None:
    """Make a kernel of your own a guest, one with Xenomai for example.

    It needs, built in or as modules: virtio's PCI, block and network drivers, ext4, devtmpfs, an initial RAM disk, and a serial console.
    """
    from rtgauge.lab.guest import Guest, check_name, guests
    from rtgauge.lab.guest import add as add_guest
    from rtgauge.lab.qemu import check_append

    guest = Guest(
        name=check_name(name),
        architecture="aarch64" if arm64 else "x86_64",
        about=f"your own: {kernel.name}",
        kernel=kernel.absolute(),
        modules=modules.absolute() if modules is not None else None,
        overlay=overlay.absolute() if overlay is not None else None,
        append=check_append(append),
    )
    known = name in guests()
    add_guest(guest)
    _say(f"lab:{name} is added{' in place of the guest that had this name' if known else ''}; next: rtgauge lab boot {name}")
