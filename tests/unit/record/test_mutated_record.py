# SPDX-License-Identifier: MIT
"""A record in which anything was changed, by accident or on purpose, is shown, or refused in one line with
status 2, soon and in little memory.
"""

from __future__ import annotations

import base64
import copy
import gzip
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtgauge.cli.main import main
from rtgauge.record.facts import Facts
from rtgauge.record.moments import MOMENTS
from rtgauge.record.record_folder import checksum
from rtgauge.record.samples import SamplesHeader
from rtgauge.record.writer import RecordWriter
from tests.support.explained import add_moments, real_formats, real_moment
from tests.support.messages import missing
from tests.support.mutated_text import places
from tests.support.samples import write_samples
from tests.unit.records import mark, run, step

EXAMPLES = 5_000 if os.environ.get("RTGAUGE_NIGHTLY") else 100
LONGEST_S, MOST_BYTES = 10.0, 1 << 30
STEP = "steps/01-wakeup-idle"
COMMANDS = (
    ("show",),
    ("show", "--json"),
    ("show", "--page"),
    ("export",),
    ("export", "--format", "json"),
    ("compare",),
    ("list",),
)
JSON_FILES = ("run.json", f"{STEP}/step.json", "steps/02-wakeup-cpu/step.json", "targets/local/system.json")
HOSTILE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.sampled_from(
        [0, -1, 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 10**18, -(2**63), 10**400]
    ),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(
        [
            "\x1b[2J",
            "\0",
            "\ufffe",
            "\u2028",
            "\u202e",
            "<script>",
            "../../etc/passwd",
            "[red]",
            "{{ 7 }}",
            "a" * 100_000,
            "\ud800",
            "nan",
            "-",
        ]
    ),
    st.sampled_from(
        [
            [],
            {},
            [[]],
            [None],
            {"": None},
            [[[[[[[[[[1]]]]]]]]]],
            [{}] * 500,
            {"a": {"b": {"c": [1, "x", None]}}},
        ]
    ),
)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    writer = RecordWriter.create(tmp_path_factory.mktemp("record"), host="h", name="n")
    plan = {"name": "quick", "description": "", "step": [{"load": "idle"}]}
    writer.write_run(
        run(writer.id).model_copy(update={"plan": plan, "requirement": "period=1ms latency<=200us"})
    )
    for item, windows in (
        step([[1_000, 2_000, 3_000, 250_000] * 20, [5, 70_000] * 40], missed=(2,), marks=[mark()]),
        step([900, 1_000_000] * 30, name="02-wakeup-cpu", load="cpu"),
    ):
        folder = writer.step_folder(item.id)
        write_samples(
            folder / "samples-0.i64",
            SamplesHeader(series=0, cpu=0, start_ns=0, interval_ns=1_000_000, warm_up_ns=0),
            [1_000, 2_000],
        )
        writer.commit_step(item, windows)
    writer.write_system(
        "local",
        Facts.model_validate(
            {
                "host": "h",
                "kernel": {"release": "6.1", "preemption": {"model": "full", "sources": {"version": "x"}}},
                "interrupts": {"lines": {"7": {"devices": "eth0", "effective": "0-1"}}},
                "scheduling": {"fair_server": {"0": {"runtime_ns": 0}}},
                "cpus": [{"id": 0, "mhz": 1000.5}],
                "audit": None,
            }
        ),
    )
    path = writer.finish("complete")
    add_moments(path, "01-wakeup-idle", real_formats(), [real_moment(), real_moment() | {"number": 2}])
    return path


def changed(document: Any, place: tuple[Any, ...], value: Any, how: str) -> Any:
    if not place:
        return value
    document = copy.deepcopy(document)
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    match how:
        case "remove":
            del inner[place[-1]]
        case "add" if isinstance(inner, dict):
            inner["added"] = value
        case "repeat" if isinstance(inner, list):
            inner *= 2
        case _:
            inner[place[-1]] = value
    return document


def mutate_json(file: Path, data: st.DataObject) -> None:
    document = json.loads(file.read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(places(document)))
        document = changed(
            document,
            place,
            data.draw(HOSTILE),
            data.draw(st.sampled_from(["set", "set", "set", "remove", "add", "repeat"])),
        )
    try:
        file.write_text(json.dumps(document))
    except ValueError:  # a number with more digits than Python writes
        file.write_text("[" + "9" * 5_000 + "]")


def mutate_bytes(file: Path, data: st.DataObject) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(len(content) - 1, 0)))
        match data.draw(st.sampled_from(["flip", "cut", "insert", "delete"])):
            case "flip" if content:
                content[at] ^= 1 << data.draw(st.integers(0, 7))
            case "cut":
                del content[at:]
            case "insert":
                content[at:at] = data.draw(st.binary(max_size=40))
            case _:
                del content[at : at + data.draw(st.integers(1, 100))]
    file.write_bytes(content)


def mutate_values(file: Path, data: st.DataObject) -> None:
    """Another table of windows, as the format has it."""
    frame = pl.read_parquet(file, glob=False)
    rows = frame.to_dicts()
    for _ in range(data.draw(st.integers(1, 3))):
        row, column = data.draw(st.sampled_from(rows)), data.draw(st.sampled_from(frame.columns))
        old = row[column]
        if isinstance(old, list):
            row[column] = data.draw(
                st.sampled_from(
                    [[], None, old * 2, old[::-1], old[:-1], [0] * 30, [-1], [2**31 - 1], [2**64 - 1], [None]]
                )
            )
        elif isinstance(old, str):
            row[column] = data.draw(st.sampled_from(["", "warm-up", "\0", None, "x" * 10_000]))
        else:
            row[column] = data.draw(
                st.sampled_from(
                    [None, 0, 1, -1, 2**31, 2**62, 2**63 - 1, 2**64 - 1, -(2**63), float("nan"), float("inf")]
                )
            )
    if data.draw(st.booleans()):
        rows *= data.draw(st.integers(0, 50))
    try:
        pl.DataFrame(rows, schema=frame.schema, strict=False).write_parquet(file)
    except (pl.exceptions.PolarsError, OverflowError, TypeError):
        file.write_bytes(b"")


def mutate_page(text: str, data: st.DataObject) -> str:
    page = bytearray(base64.b64decode(text))
    for _ in range(data.draw(st.integers(1, 8))):
        page[data.draw(st.integers(0, min(len(page), 400) - 1))] = data.draw(st.integers(0, 255))
    return base64.b64encode(page).decode()


def mutate_moments(file: Path, data: st.DataObject) -> None:
    """Another trace: its lines changed, and the bytes of pages."""
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    for line in lines[1:]:
        for cpu, pages in line["pages"].items():
            line["pages"][cpu] = [
                mutate_page(page, data) if data.draw(st.booleans()) else page for page in pages
            ]
    for at in data.draw(st.sets(st.integers(0, len(lines) - 1))):
        lines[at] = changed(
            lines[at],
            data.draw(st.sampled_from(places(lines[at]))),
            data.draw(HOSTILE),
            data.draw(st.sampled_from(["set", "remove"])),
        )
    try:
        text = "\n".join(map(json.dumps, lines))
    except ValueError:
        text = "9" * 5_000
    file.write_bytes(gzip.compress(text.encode(errors="replace")))


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    (line,) = [
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")
    ]
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_record_itself_is_not_refused(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    command, *options = words
    where = ["-o", str(tmp_path / "page.html")] if command == "report" else []
    monkeypatch.setattr(
        sys,
        "argv",
        ["rtgauge", command, str(record if command != "list" else record.parent), *options, *where],
    )
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code in {None, 0, 1, 4}


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
@given(data=st.data())
def test_a_mutated_record(
    record: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], data: st.DataObject
) -> None:
    shutil.rmtree(tmp_path)
    place = tmp_path / "runs" / "record"
    shutil.copytree(record, place)
    name = data.draw(
        st.sampled_from(
            [
                *JSON_FILES,
                *JSON_FILES,
                f"{STEP}/windows.parquet",
                f"{STEP}/windows.parquet",
                f"{STEP}/samples-0.i64",
                *[f"{STEP}/{MOMENTS}"] * 3,
            ]
        )
    )
    file = place / name
    knowing = next(
        (
            way
            for end, way in ((".json", mutate_json), (".parquet", mutate_values), (MOMENTS, mutate_moments))
            if name.endswith(end)
        ),
        mutate_bytes,
    )
    data.draw(st.sampled_from([mutate_bytes, *[knowing] * 4]))(file, data)
    if not name.endswith(".json") and data.draw(st.booleans()):
        written = json.loads((place / STEP / "step.json").read_text())
        written["checksums"][file.name] = checksum(file)
        (place / STEP / "step.json").write_text(json.dumps(written))
    command, *options = data.draw(st.sampled_from(COMMANDS))
    if command == "report":
        options = ["-o", str(tmp_path / "page.html")]
    capfd.readouterr()
    forget_peak()
    before, started = peak_bytes(), time.process_time()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(
            sys, "argv", ["rtgauge", command, str(place if command != "list" else place.parent), *options]
        )
        monkeypatch.setattr(sys, "stdout", sys.stdout)
        monkeypatch.setattr(sys, "stderr", sys.stderr)
        with pytest.raises(SystemExit) as end:
            main()
        sys.stdout.flush()
    took_s, took_bytes = time.process_time() - started, peak_bytes() - before
    errors = capfd.readouterr().err
    lines = [line for line in errors.splitlines() if not line.startswith("left out: ")]
    assert end.value.code in ({None, 0} if command == "list" else {None, 0, 1, 2, 4})
    assert len(lines) <= 1
    assert "Traceback" not in errors
    assert end.value.code != 2 or errors.startswith("rtgauge: ")
    assert took_s < LONGEST_S
    assert took_bytes < MOST_BYTES


def test_a_step_without_what_its_probe_writes(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "record"
    shutil.copytree(record, place)
    file = place / STEP / "step.json"
    step = json.loads(file.read_text())
    results = [{"name": "noise", "labels": {"cpu": 0}, "values": {}}]
    file.write_text(
        json.dumps(step | {"key": step["key"] | {"probe": "noise", "parameters": {}}, "results": results})
    )
    monkeypatch.setattr(sys, "argv", ["rtgauge", "show", str(place)])
    with pytest.raises(SystemExit) as end:
        main()
    errors = capfd.readouterr().err
    assert end.value.code == 2
    assert not missing(errors, "rtgauge:", "parameters or results", "01-wakeup-idle")
    assert errors.count("\n") == 1
