# SPDX-License-Identifier: MIT
"""Damaged and hostile records: bits that flipped, values that do not fit together, links, devices, and files
that grow when they are read.
"""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rtgauge.errors import RecordError
from rtgauge.input_file import MOST_DEPTH, parse_json, parse_toml, read_regular
from rtgauge.record.facts import Facts, Kernel
from rtgauge.record.histogram import signed_bin_of
from rtgauge.record.reader import Record
from rtgauge.record.record_folder import checksum
from rtgauge.record.windows_file import SCHEMA, check_windows, table_of, windows_of
from rtgauge.record.writer import RecordWriter
from tests.unit.records import run, step

LATENCIES = [[1_000, 2_000, 3_000, 50_000], [5, 70_000]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    writer = RecordWriter.create(tmp_path / "runs", host="h", name="n")
    writer.write_run(run(writer.id))
    recorded, windows = step(LATENCIES)
    (writer.step_folder(recorded.id) / "stream.ndjson").write_text("{}\n")
    writer.commit_step(recorded, windows)
    writer.write_system("local", Facts(kernel=Kernel(release="6")))
    return writer.finish("complete")


def read(path: Path) -> pl.DataFrame:
    record = Record.open(path)
    return table_of(record.windows(record.steps[0]))


def table(path: Path) -> Path:
    return path / "steps/01-wakeup-idle/windows.parquet"


def change(path: Path, file: str, **values: Any) -> None:
    place = path / file
    place.write_text(json.dumps({**json.loads(place.read_text()), **values}))


def replace_windows(path: Path, frame: pl.DataFrame, *, with_checksum: bool) -> None:
    """As somebody would who made the record; without a checksum as earlier versions wrote it."""
    frame.write_parquet(table(path))
    change(
        path,
        "steps/01-wakeup-idle/step.json",
        checksums={"windows.parquet": checksum(table(path))} if with_checksum else {},
    )


def test_every_file_of_a_step_has_its_checksum(path):
    (item,) = Record.open(path).steps
    folder = path / "steps" / item.id
    assert item.checksums == {name: checksum(folder / name) for name in ("stream.ndjson", "windows.parquet")}


def test_a_flipped_bit_breaks_the_checksum(path):
    """Any of them: a checksum does not depend on which."""
    good = table(path).read_bytes()
    generator = random.Random(1)
    for _ in range(200):
        bit = generator.randrange(len(good) * 8)
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        table(path).write_bytes(bad)
        with pytest.raises(RecordError, match="checksum"):
            read(path)
    table(path).write_bytes(good)
    read(path)


def test_a_record_of_an_earlier_version_is_read(path):
    windows = read(path)
    step_file = path / "steps/01-wakeup-idle/step.json"
    written = json.loads(step_file.read_text())
    del written["checksums"]
    step_file.write_text(json.dumps(written))
    assert_frame_equal(read(path), windows)


def test_a_flipped_bit_is_an_error_or_a_consistent_table(path, capfd):
    replace_windows(path, read(path), with_checksum=False)
    good = table(path).read_bytes()
    generator = random.Random(2)
    observed = 0
    for _ in range(300):
        bit = generator.randrange(len(good) * 8)
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        table(path).write_bytes(bad)
        try:
            check_windows(windows_of(read(path)))
        except RecordError:
            observed += 1
    assert observed > 100
    assert "panicked" not in capfd.readouterr().err


BINS = signed_bin_of([1_000, 2_000, 3_000, 50_000]).tolist()
ROW = {
    "series": 0, "phase": "measure", "index": 0, "start_ns": 0, "end_ns": 10**9, "count": 4, "missed": 0,
    "min_ns": 1_000, "max_ns": 50_000,
    "sum_ns": 56_000, "m2_ns2": 1e9, "bins": BINS, "counts": [1, 1, 1, 1], "missed_bins": [],
    "missed_counts": [],
}  # fmt: skip


def frame(**values: Any) -> pl.DataFrame:
    return pl.DataFrame([{**ROW, **values}], schema=SCHEMA)


@pytest.mark.parametrize(
    ("values", "expected_text"),
    [
        ({"phase": "other"}, "unknown phase"),
        ({"count": None}, "empty value"),
        ({"bins": None}, "empty value"),
        ({"bins": [BINS[0], None, *BINS[2:]]}, "empty bin"),
        ({"start_ns": 2 * 10**9}, "times out of order"),
        ({"end_ns": 2**62 + 1}, "times out of order"),
        ({"count": 2**60}, "too large a count"),
        ({"missed": 2**63}, "too large a count"),
        ({"counts": [2**63, 2**63, 2, 2]}, "too large a count"),
        ({"counts": [1, 1, 1]}, "bins without counts"),
        ({"missed_bins": [3]}, "bins without counts"),
        ({"bins": [BINS[1], BINS[0], *BINS[2:]]}, "bins out of order"),
        ({"bins": [BINS[0], BINS[0], *BINS[2:]]}, "bins out of order"),
        ({"bins": [*BINS[:3], 20_000]}, "bins out of range"),
        ({"bins": [-20_000, *BINS[1:]]}, "bins out of range"),
        ({"counts": [1, 1, 1, 2]}, "more values in its bins"),
        ({"min_ns": 60_000}, "extremes"),
        ({"min_ns": None}, "extremes"),
        ({"max_ns": 2**62 + 1}, "extremes"),
        ({"min_ns": 2_000}, "outside its extremes"),
        ({"max_ns": 2_000, "sum_ns": 6_000}, "outside its extremes"),
        ({"sum_ns": 10**12}, "mean outside"),
        ({"m2_ns2": float("nan")}, "deviation"),
        ({"m2_ns2": -1.0}, "deviation"),
    ],
)
def test_values_that_do_not_fit_together(values, expected_text):
    check_windows(windows_of(frame()))
    with pytest.raises(ValueError, match=expected_text):
        check_windows(windows_of(frame(**values)))


def test_windows_of_another_step_are_refused(path):
    replace_windows(path, table_of(step([[1, 2], [3]])[1]), with_checksum=True)
    with pytest.raises(RecordError, match="does not have as many values"):
        read(path)


@pytest.mark.parametrize("with_checksum", [True, False])
@pytest.mark.parametrize("column", ["bins", "missed_bins"])
def test_a_tiny_table_of_a_billion_values_is_not_decoded(path, with_checksum, column):
    """Values that are all the same take no room in Parquet."""
    many = 30_000_000
    counts = {"bins": "counts", "missed_bins": "missed_counts"}[column]
    lists = {
        column: pl.zeros(many, dtype=pl.Int32, eager=True).implode(),
        counts: pl.zeros(many, dtype=pl.UInt64, eager=True).implode(),
    }
    bomb = (
        frame()
        .with_columns(**{name: values.cast(SCHEMA[name]) for name, values in lists.items()})
        .select(list(SCHEMA))
    )
    replace_windows(path, bomb, with_checksum=with_checksum)
    assert table(path).stat().st_size < 200_000
    started = time.process_time()
    with pytest.raises(RecordError, match="would expand to"):
        read(path)
    assert time.process_time() - started < 10


def test_padding_and_holes_allow_no_more_values(path):
    """The bound was by the file's size: 16 MiB of holes took 2.4 GiB."""
    many = 3_000_000
    lists = {
        "bins": pl.zeros(many, dtype=pl.Int32, eager=True).implode(),
        "counts": pl.zeros(many, dtype=pl.UInt64, eager=True).implode(),
    }
    bomb = (
        frame()
        .with_columns(**{name: values.cast(SCHEMA[name]) for name, values in lists.items()})
        .select(list(SCHEMA))
    )
    replace_windows(path, bomb, with_checksum=False)
    content = table(path).read_bytes()
    length = int.from_bytes(content[-8:-4], "little") + 8
    with table(path).open("wb") as file:
        file.write(content[:-length])
        file.seek(16 << 20, os.SEEK_CUR)
        file.write(content[-length:])
    with pytest.raises(RecordError, match="would expand to 6"):
        read(path)


def test_twenty_thousand_series_are_read_soon(path):
    file = path / "steps/01-wakeup-idle/step.json"
    step = json.loads(file.read_text())
    file.write_text(
        json.dumps(step | {"series": [step["series"][0] | {"series": number} for number in range(20_000)]})
    )
    started = time.process_time()
    assert len(Record.open(path).steps[0].series) == 20_000
    assert time.process_time() - started < 10


def test_many_windows_that_are_all_the_same_are_not_decoded(path):
    replace_windows(path, frame().select(pl.all().gather([0] * 400_000)), with_checksum=True)
    with pytest.raises(RecordError, match="would expand to"):
        read(path)


def test_columns_in_another_order_are_the_same_table(path):
    windows = read(path)
    replace_windows(path, windows.select(reversed(windows.columns)), with_checksum=True)
    assert_frame_equal(read(path), windows)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("series", 0, "count"), "6"),
        (("series", 0, "missed"), "0"),
        (("series", 0, "p50_ns"), 2000.0),
        (("series", 0, "exact_quantiles"), "true"),
        (("series", 0, "labels"), {"cpu": True}),
        (("key", "repeat"), "1"),
        (("cpus",), 0),
        (("cpus",), ["0"]),
        (("id",), ["01-wakeup-idle"]),
        (("parameters", "interval_ns"), "1000000"),
        (("parameters", "interval_ns"), [1_000_000]),
        (("parameters", "interval_ns"), -1),
        (("parameters", "resolution_ns"), {"ns": 1}),
        (("parameters", "histogram_limits_ns"), [1]),
        (("parameters", "histogram_limits_ns"), {"x": 1}),
        (("parameters", "policy"), ["fifo"]),
        (("key", "parameters", "interval_ns"), True),
        (("key", "parameters", "path"), 7),
        (("key", "parameters", "rt"), {}),
        (("clock",), {"cost_mean_ns": "12"}),
    ],
)
def test_a_value_of_another_type_is_refused(path, place, value):
    """An integer as text, a list for a scalar: what reads a record trusts its types."""
    file = path / "steps/01-wakeup-idle/step.json"
    written = json.loads(file.read_text())
    holder = written
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    file.write_text(json.dumps(written))
    with pytest.raises(RecordError, match="does not have a record's format"):
        Record.open(path)


def test_the_least_integer_is_beyond_every_time():
    """It has no absolute value."""
    for values in ({"start_ns": -(2**63)}, {"min_ns": -(2**63), "sum_ns": 0}):
        with pytest.raises(ValueError, match="a window has"):
            check_windows(windows_of(frame(**values)))


def test_other_columns_and_no_parquet(path):
    for frame_ in (
        frame().drop("bins"),
        frame().with_columns(more=pl.lit(1)),
        frame().with_columns(pl.col("bins").cast(pl.List(pl.Float64))),
    ):
        replace_windows(path, frame_, with_checksum=True)
        with pytest.raises(RecordError):
            read(path)
    for data in (
        b"",
        b"PAR1",
        b"PAR1" + b"\xff" * 100 + b"PAR1",
        b"PAR1" + (2**31).to_bytes(4, "little") + b"PAR1",
    ):
        table(path).write_bytes(data)
        change(path, "steps/01-wakeup-idle/step.json", checksums={})
        with pytest.raises(RecordError):
            read(path)


@pytest.mark.parametrize(
    "name",
    [
        "run.json",
        "steps/01-wakeup-idle/step.json",
        "steps/01-wakeup-idle/windows.parquet",
        "targets/local/system.json",
    ],
)
@pytest.mark.parametrize(
    "kind", ["pipe", pytest.param("device", marks=pytest.mark.root), "folder", "link", "link to a device"]
)
def test_a_file_that_is_none(path, tmp_path, name, kind):
    """A pipe would be waited for, a device has no end, a link shows a file of this machine."""
    place = path / name
    place.rename(tmp_path / "private")
    match kind:
        case "pipe":
            os.mkfifo(place)
        case "device":
            os.mknod(place, 0o20666, os.makedev(1, 5))
        case "folder":
            place.mkdir()
        case "link":
            place.symlink_to(tmp_path / "private")
        case _:
            place.symlink_to("/dev/zero")
    with pytest.raises(RecordError) as error:
        read(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("folder", ["steps", "steps/01-wakeup-idle", "targets", "targets/local"])
def test_a_folder_that_is_a_link(path, tmp_path, folder):
    (path / folder).rename(tmp_path / "private")
    (path / folder).symlink_to(tmp_path / "private")
    with pytest.raises(RecordError, match="is a link"):
        read(path)


def test_a_record_that_is_linked_to_is_read(path, tmp_path):
    (tmp_path / "link").symlink_to(path)
    assert read(tmp_path / "link").height == 2


@pytest.mark.parametrize(
    "text",
    [
        "[" * 900 + "]" * 900,
        '{"a":' * 900 + "1" + "}" * 900,
        "[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1),
        "[" + "[]," * 2_000_001 + "[]]",
        '{"a": "\\ud800"}',
        '{"\\udfff": 1}',
        "9" * 5_000,
        "[1e999]",
        "[1e31]",
        "NaN",
        "[Infinity]",
        str(2**63),
        str(-(2**63) - 1),
        "\ufeff{}",
        "{",
        "",
    ],
    ids=lambda text: text[:12],
)
def test_json_that_is_refused(text):
    with pytest.raises(ValueError, match=r".") as error:
        parse_json(text.encode())
    assert "\n" not in str(error.value)
    assert not isinstance(error.value, UnicodeError)


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 300_000) + " = 1",
        "[" + ".".join("a" * 300_000) + "]",
        "a = " + "[" * 5_000,
        "a = " + "{a=" * 5_000,
        f"a = {'9' * 5_000}",
        f"a = 0x{'f' * 5_000}",
        "a = nan",
        "a = inf",
        "#" * (2 << 20),
    ],
    ids=lambda text: text[:12],
)
def test_toml_that_is_refused(text):
    started = time.process_time()
    with pytest.raises(ValueError, match=r"."):
        parse_toml(text)
    assert time.process_time() - started < 10


def test_the_longest_keys_do_not_take_long():
    text = "\n".join(f"k{i}." + ".".join("a" * 63) + " = 1" for i in range(2_000))
    started = time.process_time()
    with pytest.raises(ValueError, match="64 levels deep"):
        parse_toml(text)
    assert time.process_time() - started < 10


def test_only_as_much_is_read_as_was_allowed(tmp_path):
    (tmp_path / "x").write_bytes(bytes(100))
    assert len(read_regular(tmp_path / "x", 100)) == 100
    with pytest.raises(OSError, match="larger than"):
        read_regular(tmp_path / "x", 99)


@pytest.mark.parametrize("version", ["2", "x", [], {}, 1.5, True, 0, -1, None, 2, 10**30])
def test_the_version_of_the_schema_is_a_number(path, version):
    change(path, "run.json", schema_version=version)
    if version is None:
        with pytest.raises(RecordError):
            Record.open(path)
        return
    with pytest.raises(RecordError, match=r"schema|bits"):
        Record.open(path)
