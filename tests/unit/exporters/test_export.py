# SPDX-License-Identifier: MIT
"""What a record gives to other programs is what it holds."""

from __future__ import annotations

import csv
import io

import polars as pl
import pytest

from rtgauge.errors import InputError
from rtgauge.exporters.record_export import export, table
from rtgauge.record.model import RunDocument
from rtgauge.record.reader import Record
from rtgauge.record.writer import RecordWriter
from tests.unit.records import mark, run, step


@pytest.fixture
def record(tmp_path):
    writer = RecordWriter.create(tmp_path, host="h", name="quick")
    writer.write_run(run(writer.id))
    writer.commit_step(*step([[100, 200, 300], [5]]))
    writer.commit_step(*step([[], [7]], name="02-wakeup-cpu", load="cpu", marks=[mark()]))
    return Record.open(writer.finish("complete"))


def test_csv_has_a_row_a_series_and_one_for_all(record):
    rows = list(csv.DictReader(io.StringIO(export(record, "csv", None))))
    assert [(r["step"], r["series"], r["cpu"], r["count"], r["max_ns"], r["all_cpus"]) for r in rows] == [
        ("01-wakeup-idle", "0", "0", "3", "300", "false"),
        ("01-wakeup-idle", "1", "1", "1", "5", "false"),
        ("01-wakeup-idle", "", "", "4", "300", "true"),
        ("02-wakeup-cpu", "0", "0", "0", "", "false"),
        ("02-wakeup-cpu", "1", "1", "1", "7", "false"),
        ("02-wakeup-cpu", "", "", "1", "7", "true"),
    ]
    assert (rows[3]["load"], rows[3]["marks"], rows[3]["worst_mark"]) == (
        "cpu",
        "invalid:throttled",
        "invalid",
    )
    assert rows[0]["mean_ns"] == "200.0"
    assert rows[0]["filled_p50_ns"] == "201"


def test_parquet_has_the_same_table_and_the_steps_windows(record, tmp_path):
    assert export(record, "parquet", tmp_path / "t.parquet") is None
    assert pl.read_parquet(tmp_path / "t.parquet").equals(table(record))
    export(record, "parquet", tmp_path / "w.parquet", windows=True)
    windows = pl.read_parquet(tmp_path / "w.parquet")
    assert windows.select("step", "series", "count").rows() == [
        ("01-wakeup-idle", 0, 3), ("01-wakeup-idle", 1, 1), ("02-wakeup-cpu", 0, 0), ("02-wakeup-cpu", 1, 1),
    ]  # fmt: skip


def test_json_is_the_document(record):
    assert RunDocument.model_validate_json(export(record, "json", None)) == record.document()


def test_a_record_without_steps_has_the_same_columns(record):
    empty = Record(record.path, run(), [], {})
    assert table(empty).schema == table(record).schema
    assert table(empty).height == 0


def test_wrong_places(record, tmp_path):
    with pytest.raises(InputError, match="-o FILE"):
        export(record, "parquet", None)
    with pytest.raises(InputError, match="is a folder"):
        export(record, "csv", tmp_path)
    with pytest.raises(InputError, match="cannot be written"):
        export(record, "csv", tmp_path / "none" / "x.csv")
    with pytest.raises(InputError, match="parquet"):
        export(record, "csv", None, windows=True)
