# SPDX-License-Identifier: MIT
"""The options of `rtgauge export` for KCIDB."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.extension_options import ForExport
from rtgauge.errors import InputError

if TYPE_CHECKING:
    from rtgauge.exporters.exporter import Exporter
    from rtgauge_ext.exporters.kcidb import KernelSource


@dataclass(frozen=True)
class KernelTree(ForExport):
    """The source of the measured kernel, and who submits the report."""

    kernel_tree: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=(
                "Git clone whose HEAD the kernel was built from; adds the checkout and the build (kcidb "
                "only)."
            ),
        ),
    ] = None
    origin: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Name of the submitter for KCIDB: lower-case letters, digits and _."
        ),
    ] = "rtgauge"

    def exporter(self, form: str) -> Exporter | None:
        """Return the exporter with the kernel's commit; see ForExport."""
        from rtgauge_ext.exporters.kcidb import KCIDB, kcidb

        if self.kernel_tree is None:
            return None
        if form != "kcidb":
            raise InputError(
                f"{form} has no place for the kernel's commit: leave out --kernel-tree, or use --format kcidb"
            )
        return replace(KCIDB, make=partial(kcidb, source=_kernel_source(self.kernel_tree, self.origin)))


def _kernel_source(tree: Path, origin: str) -> KernelSource:
    from rtgauge_ext.bisect.git_commits import GitError, GitRepository
    from rtgauge_ext.exporters.kcidb import KernelSource

    if re.fullmatch(r"[a-z0-9_]+", origin) is None:
        raise InputError(f"--origin {origin}: KCIDB accepts only lower-case letters, digits and _")
    if not tree.is_dir():
        raise InputError(
            f"--kernel-tree {tree} is not a folder; name the folder with the sources of the kernel"
        )
    repository = GitRepository(tree)
    try:
        url = repository.git("remote", "get-url", "origin")
    except GitError:
        url = ""
    commit = repository.commit("HEAD", "--kernel-tree")
    return KernelSource(origin, commit, repository.git("describe", "--always", "--tags"), url)
