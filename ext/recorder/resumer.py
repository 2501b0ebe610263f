# SPDX-License-Identifier: MIT
"""What `rtgauge show` and `rtgauge resume` do with a recorder's folder."""

from __future__ import annotations

import json as json_module
from contextlib import suppress
from pathlib import Path

import typer

from rtgauge.cli.extension_resumer import ResumeOptions, Resumer
from rtgauge.errors import InputError, RecordError
from rtgauge.escape import one_line


def _show(path: Path, json: bool) -> None:
    from rtgauge.cli.console import Console
    from rtgauge.record.writer import wall_time
    from rtgauge.report.terminal_table import print_tables
    from rtgauge_ext.recorder.folder import RecorderFolder
    from rtgauge_ext.recorder.recorder_report import (
        EVENTS_SHOWN,
        culprits_table,
        hours_document,
        hours_table,
        late_activations,
        latest_table,
        lines,
        places_table,
        ranking,
        rules_table,
        triggers_table,
    )

    folder = RecorderFolder.open(path)
    if json:
        moments: list[dict[str, object]] = []
        for number in sorted(folder.keeping.moments):
            with suppress(RecordError):  # the recorder has just removed it
                moments.append(folder.moment(number).head.model_dump())
        document = {
            "settings": folder.settings.model_dump(),
            "bytes": folder.bytes,
            "counts": dict(folder.counts),
            "late": [each._asdict() for each in late_activations(folder)],
            "moments": moments,
            "hours": hours_document(folder),
            "culprits": [each._asdict() for each in ranking(folder)],
            "events": [event.model_dump(exclude={"kind"}) for event in folder.events],
        }
        typer.echo(json_module.dumps(document, indent=1))
        return
    for line in lines(folder):
        typer.echo(one_line(line))
    triggers, rules, places = triggers_table(folder), rules_table(folder), places_table(folder)
    tables = [
        *(table for table in (rules, places) if table is not None),
        culprits_table(folder),
        latest_table(folder),
        triggers,
        hours_table(folder),
    ]
    print_tables([table for table in tables if table.rows], Console())
    for event in folder.events[-EVENTS_SHOWN:]:
        typer.echo(f"{wall_time(event.wall_ns)} {event.what}: {one_line(event.detail)}")
    typer.echo(f"make a record of it: rtgauge recorder import {path}")


def _resume(path: Path, _options: ResumeOptions) -> None:
    raise InputError(f"{path} is a recorder's folder; continue it with: rtgauge recorder run --folder {path}")


RECORDER = Resumer("a recorder's folder", str, frozenset(), _resume, _show)
