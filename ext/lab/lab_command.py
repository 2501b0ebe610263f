# SPDX-License-Identifier: MIT
"""`rtgauge lab` boots real kernels in virtual machines."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict, replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.lazy_group import ListedGroup
from rtgauge.cli.shared_options import Json
from rtgauge.errors import InputError
from rtgauge_ext.lab.boot_guest import boot as boot_guest
from rtgauge_ext.lab.guest import Guest, check_name, find_guest, guests, of_version
from rtgauge_ext.lab.guest import add as add_guest
from rtgauge_ext.lab.guest import save as save_guest
from rtgauge_ext.lab.image import build as build_image
from rtgauge_ext.lab.image import find_image
from rtgauge_ext.lab.kernel_image import architecture_of
from rtgauge_ext.lab.qemu import Accelerator, BootOptions, check_append
from rtgauge_ext.lab.running_guests import cut_power, find_running, running_guest
from rtgauge_ext.lab.running_guests import remove as remove_guest
from rtgauge_ext.lab.running_guests import stop as stop_guest
from rtgauge_ext.lab.ssh import ssh_command

if TYPE_CHECKING:
    from rtgauge.system.runtime import Need

HELP = """Boot real kernels in virtual machines (guests).

The kernels are Debian's, stock or PREEMPT_RT, for x86-64 and arm64, Debian's stock kernel for riscv64, or
your own, e.g. with Xenomai.

\b
Examples:
  rtgauge lab build debian-rt          fetch and build the image, once
  rtgauge lab boot debian-rt --append "isolcpus=3 nohz_full=3"
  rtgauge probe wakeup --target lab:debian-rt
  rtgauge lab shell debian-rt
  rtgauge lab stop debian-rt

The latencies of an emulated guest say nothing about a real machine, so the verdict on them is always
"cannot tell".
"""

app = typer.Typer(help=HELP, cls=ListedGroup, no_args_is_help=True, rich_markup_mode=None)
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help=(
            "Name of the guest: debian, debian-rt, debian-arm64, debian-rt-arm64, debian-riscv64, or one "
            "that you added."
        ),
    ),
]


def _is_riscv(kernel: Path) -> bool:
    """Return whether the file is a kernel for riscv64; False if it cannot be read."""
    try:
        return architecture_of(kernel) == "riscv64"
    except OSError:
        return False


def _notify(text: str) -> None:
    typer.echo(text, err=True)


@app.command("list")
def list_guests(json: Json = False) -> None:
    """List guests, and show which are built and running.

    \b
    Examples:
      rtgauge lab list
      rtgauge lab list --json
    """
    from rich.table import Table

    from rtgauge.cli.console import Console

    rows = [(guest, find_image(guest), find_running(guest.name)) for guest in guests().values()]
    if json:
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

    table = Table("name", "description", "kernel", "state", box=None, pad_edge=False)
    for guest, image, running in rows:
        state = "not built" if image is None else "built"
        if running is not None:
            how = "emulated" if running.accelerator == "tcg" else "KVM"
            how += ", instruction clock" if running.icount else ""
            state = f"running, {how}, {'serial line at' if running.serial else 'ssh'} port {running.port}" + (
                f", {running.append}" if running.append else ""
            )
        table.add_row(guest.name, guest.about, image.release if image is not None else "", state)
    Console().print(table)


@app.command()
def build(
    name: Name,
    fresh: Annotated[bool, typer.Option("--fresh", help="Rebuild with Debian's newest packages.")] = False,
    kernel: Annotated[
        str,
        typer.Option(metavar="VERSION", help="Add a guest with this kernel of Debian: 7.3, or newest."),
    ] = "",
    suite: Annotated[
        str,
        typer.Option(
            metavar="SUITE", help="Take the kernel from this Debian suite, e.g. sid or experimental."
        ),
    ] = "",
) -> None:
    """Build the image of a guest from Debian packages.

    An existing image is kept unless you add --fresh. With --kernel or --suite, this adds a guest with that
    kernel, such as debian-rt-7-3.

    \b
    Examples:
      rtgauge lab build debian-rt
      rtgauge lab build debian-arm64 --fresh
      rtgauge lab build debian-rt --kernel 7.3
    """
    guest = find_guest(name)
    if kernel or suite:
        guest = of_version(guest, kernel, suite)
    image = build_image(guest, _notify, fresh=fresh)
    if kernel or suite:
        save_guest(guest)
    _notify(f"lab:{guest.name} is built, kernel {image.release} ({image.folder})")


@app.command()
def boot(
    name: Name,
    append: Annotated[
        str, typer.Option(metavar="TEXT", help="Kernel parameters to append, e.g. 'isolcpus=3 nosmt'.")
    ] = "",
    smp: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="CPUs, as for QEMU's -smp; default 4,cores=2,threads=2 (x86-64) or 4.",
        ),
    ] = None,
    memory: Annotated[int, typer.Option(min=256, max=1 << 20, metavar="MIB", help="Memory in MiB.")] = 1024,
    port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, metavar="N", help="Port for ssh on the loopback interface; default: a free one."
        ),
    ] = None,
    accel: Annotated[
        str, typer.Option(metavar="NAME", help="tcg (emulation), kvm, or auto: KVM if a trial boot succeeds.")
    ] = "auto",
    icount: Annotated[
        bool,
        typer.Option(
            "--icount",
            help=(
                "Make the guest's clock count instructions, so that a busy host does not affect its "
                "latencies."
            ),
        ),
    ] = False,
) -> None:
    """Boot a guest and wait until it answers over ssh.

    This first builds the image if necessary. With --icount, the clock in the guest counts the guest's
    instructions instead of following the host's clock, so a busy host does not affect latencies in the
    guest.

    \b
    Examples:
      rtgauge lab boot debian-rt
      rtgauge lab boot debian-rt --icount
      rtgauge lab boot debian --append "isolcpus=1" --smp 4
    """
    from rtgauge.target.engine_path import installed_engines

    options = _options(append, smp, memory, port, accel, icount=icount)

    guest = find_guest(name)
    if guest.serial:
        options = replace(options, engines=installed_engines())
    image = build_image(guest, _notify)
    _notify(f"booting lab:{name}, kernel {image.release}")
    running = boot_guest(guest, image, options, _notify)
    how = (
        "; it is emulated, so its latencies say nothing about a real machine"
        if running.accelerator == "tcg"
        else " with KVM"
    )
    _notify(f"lab:{name} is up after {running.boot_s} s{how}")


def _options(
    append: str, smp: str | None, memory: int, port: int | None, accel: str, *, icount: bool
) -> BootOptions:
    accelerators: dict[str, Accelerator | None] = {"auto": None, "tcg": "tcg", "kvm": "kvm"}
    if accel not in accelerators:
        raise InputError(f"--accel {accel[:40]}: give auto, tcg or kvm")
    return BootOptions(
        append=append, smp=smp, memory_mib=memory, port=port, accelerator=accelerators[accel], icount=icount
    )


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def shell(context: typer.Context, name: Name) -> None:
    """Log in to a running guest, or run a command there.

    A single argument is a command line for the guest's shell. Several arguments are a program and its
    arguments.

    \b
    Examples:
      rtgauge lab shell debian-rt
      rtgauge lab shell debian-rt uname -a
      rtgauge lab shell debian-rt 'dmesg | tail'
    """
    command = ssh_command(running_guest(name))
    arguments = context.args if len(context.args) < 2 else [shlex.join(context.args)]
    os.execvp(command[0], [*command, *arguments])  # noqa: S606 - no shell: ssh replaces this process


@app.command()
def stop(name: Name) -> None:
    """Shut a guest down.

    \b
    Examples:
      rtgauge lab stop debian-rt
    """
    _notify(f"lab:{name} is off" if stop_guest(find_guest(name).name) else f"lab:{name} was not running")


@app.command()
def reset(name: Name) -> None:
    """Reset a guest, as a power cut would: unwritten data is lost.

    \b
    Examples:
      rtgauge lab reset debian-rt
    """
    cut_power(running_guest(name))
    _notify(f"lab:{name} is rebooting")


@app.command("rm")
def remove(name: Name) -> None:
    """Remove a guest's image and disk, and the guest itself if you added it.

    \b
    Examples:
      rtgauge lab rm debian-rt
    """
    removed = remove_guest(find_guest(name))
    _notify(f"lab:{name}: removed {', '.join(removed)}" if removed else f"lab:{name}: nothing to remove")


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new guest.")],
    kernel: Annotated[Path, typer.Option(metavar="FILE", help="Kernel: a bzImage (x86-64) or an Image.")],
    modules: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of modules (.ko); all of them are loaded at boot."),
    ] = None,
    overlay: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Files to add: DIR/etc/x becomes /etc/x in the guest.")
    ] = None,
    append: Annotated[str, typer.Option(metavar="TEXT", help="Kernel parameters for every boot.")] = "",
    arm64: Annotated[bool, typer.Option("--arm64", help="The kernel is for arm64.")] = False,
    serial: Annotated[
        bool,
        typer.Option(
            "--serial",
            help="The guest has no disk or network: it is reached over a serial line and keeps nothing.",
        ),
    ] = False,
) -> None:
    """Add a guest with your own kernel.

    The kernel needs virtio PCI, block and network drivers, ext4, devtmpfs, an initial RAM disk and a serial
    console, built in or as modules. With --serial it needs these built in: devtmpfs, an initial RAM disk,
    pseudo terminals and two 8250 lines.

    \b
    Examples:
      rtgauge lab add xenomai --kernel bzImage --modules lib/modules
      rtgauge lab add rtai --kernel bzImage --overlay root/ --serial
    """
    guest = Guest(
        name=check_name(name),
        architecture="aarch64" if arm64 else "riscv64" if _is_riscv(kernel) else "x86_64",
        about=f"your own: {kernel.name}",
        kernel=kernel.absolute(),
        modules=modules.absolute() if modules is not None else None,
        overlay=overlay.absolute() if overlay is not None else None,
        append=check_append(append),
        serial=serial,
    )
    replaces = name in guests()
    add_guest(guest)
    _notify(
        f"lab:{name} added{', replacing the guest with that name' if replaces else ''}; boot it with: "
        f"rtgauge lab boot {name}"
    )


@app.command()
def doctor(name: Name, json: Json = False) -> None:
    """Check whether a guest can measure on a co-kernel, and show what it lacks.

    This boots the guest if it is not running. The exit status is 0 if the guest can measure on a co-kernel,
    otherwise 1.

    \b
    Examples:
      rtgauge lab doctor xenomai
      rtgauge lab doctor rtai --json
    """
    from rtgauge.system.runtime import runtimes
    from rtgauge.target.open_target import reader

    with reader(f"lab:{find_guest(name).name}") as (_, read):
        files = read(list(dict.fromkeys(path for runtime in runtimes() for path in runtime.need_paths)))
    all_needs = [need for runtime in runtimes() for need in runtime.needs(files)]
    able = [
        runtime.name
        for runtime in runtimes()
        if all(need.met or need.only_for is not None for need in all_needs if need.cokernel == runtime.name)
    ]
    if json:
        typer.echo(dumps({"rt": able, "needs": [asdict(need) for need in all_needs]}, indent=1))
    else:
        _print_needs(name, able, all_needs)
    raise typer.Exit(0 if able else 1)


def _print_needs(name: str, able: list[str], needs: list[Need]) -> None:
    """Print the answer, then the needs of each co-kernel that can be measured, or of all if none can."""
    from rich.table import Table

    from rtgauge.cli.console import Console

    how = f"can measure with --rt {' or '.join(able)}" if able else "cannot measure on a co-kernel"
    typer.echo(f"lab:{name} {how}")
    table = Table("rt", "needs", "there", "remedy", box=None, pad_edge=False)
    for need in needs:
        if not able or need.cokernel in able:
            what = need.what if need.only_for is None else f"{need.what}, for {need.only_for}"
            table.add_row(need.cokernel, what, "yes" if need.met else "no", "" if need.met else need.remedy)
    Console().print(table)
