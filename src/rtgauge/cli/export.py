# SPDX-License-Identifier: MIT
"""`rtgauge export` writes statistics for other tools."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli import completion
from rtgauge.cli.options import AllowLeftOut, Require
from rtgauge.errors import InputError
from rtgauge.known_extensions import from_where
from rtgauge.suggest import nearest

if TYPE_CHECKING:
    from rtgauge.exporters.exporter import KernelSource


def export(
    record: Annotated[
        Path, typer.Argument(metavar="RECORD", autocompletion=completion.records, help="A record's folder.")
    ],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="csv, json, parquet, junit, kcidb, markdown, openmetrics, perfetto or trace.dat.",
        ),
    ] = "csv",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File to write (required for parquet and trace.dat); default: standard output.",
        ),
    ] = None,
    step: Annotated[
        str | None, typer.Option("--step", metavar="ID", help="Only this step, e.g. 01-wakeup-idle.")
    ] = None,
    require: Require = None,
    allow_left_out: AllowLeftOut = False,
    windows: Annotated[
        bool, typer.Option("--windows", help="Export the windows with their histograms (parquet only).")
    ] = False,
    kernel_tree: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=(
                "Git clone whose HEAD the kernel was built from; adds the checkout and the build (kcidb "
                "only)."
            ),
        ),
    ] = None,
    origin: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Name of the submitter for KCIDB: lower-case letters, digits and _."
        ),
    ] = "rtgauge",
) -> None:
    """Export the statistics of a record for other tools.

    csv, parquet: one row per step and CPU, with its conditions and all statistics. json: the whole
    document. junit: one test case per step. openmetrics: metrics for node_exporter's textfile collector.
    markdown: the tables. kcidb: results for kernel CI (KCIDB). trace.dat, perfetto: the kernel's events
    around the largest latencies of one explained step; open trace.dat with trace-cmd or KernelShark, and
    perfetto with ui.perfetto.dev.

    \b
    Examples:
      rtgauge export RECORD > statistics.csv
      rtgauge export RECORD --format json
      rtgauge export RECORD --format junit -o rtgauge.xml
      rtgauge export latest --format junit --require "latency<=200us"
      rtgauge export RECORD --format parquet --windows -o windows.parquet
      rtgauge export RECORD --format trace.dat --step 01-wakeup-idle -o trace.dat

      rtgauge export RECORD --format kcidb --kernel-tree ~/linux --origin mylab

    Exit status: 0; with --require or --allow-left-out, the same as rtgauge run.
    """
    from rtgauge.cli.conclusion import judged
    from rtgauge.cli.record_argument import open_record, with_one_step
    from rtgauge.exporters.record_export import GONE, formats
    from rtgauge.exporters.record_export import export as write
    from rtgauge.verdict.worst import exit_status

    if form in GONE:
        raise InputError(f"rtgauge cannot write {form} any more; use {GONE[form]}")
    if form not in formats():
        raise InputError(
            f"unknown format '{form}'{from_where('exporters', form) or nearest(form, formats())}"
        )
    source = with_one_step(judged(open_record(record), require, allow_left_out=allow_left_out), step)
    kernel = None if kernel_tree is None else _kernel_source(kernel_tree, origin)
    text = write(source, form, out, windows=windows, source=kernel)
    if text is not None:
        typer.echo(text, nl=False)
    if require is not None or allow_left_out:
        verdicts = (
            source.run.verdicts
            if step is None
            else [verdict for verdict in source.run.verdicts if verdict.step == step]
        )
        raise typer.Exit(exit_status(verdicts, source.steps))


def _kernel_source(tree: Path, origin: str) -> KernelSource:
    from rtgauge.exporters.exporter import KernelSource
    from rtgauge.study.git_commits import GitError, GitRepository

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
