# SPDX-License-Identifier: MIT
"""Defines the tables of the store, the same for every database.

Times in columns `_ns` are integers; dates are ISO 8601 in UTC, as in the records.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
)

from rtgauge.record.quantiles import QUANTILES

FIGURES = ("min_ns", *QUANTILES, "max_ns")
SCHEMA_VERSION = 3
"""The version of these tables. The module `migrations` updates older versions."""
METADATA = MetaData()
_TEXT = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that every database sorts by bytes."""
_ID = BigInteger().with_variant(Integer, "sqlite")


def _id() -> Column[int]:
    return Column("id", _ID, primary_key=True)


def _of(table: str, name: str | None = None, *, nullable: bool = False, owned: bool = False) -> Column[int]:
    """Return a column that refers to another table. An `owned` row is deleted with the row it refers to."""
    key = ForeignKey(f"{table}.id", ondelete="CASCADE" if owned else None)
    return Column(name or f"{table}_id", _ID, key, nullable=nullable, index=True)


def _texts(*names: str, nullable: bool = False) -> list[Column[str]]:
    return [Column(name, _TEXT, nullable=nullable) for name in names]


def _numbers(*names: str, nullable: bool = True) -> list[Column[int]]:
    return [Column(name, BigInteger, nullable=nullable) for name in names]


STORE = Table("rtgauge_store", METADATA, Column("schema_version", Integer, primary_key=True))

MACHINE = Table(
    "machine",
    METADATA,
    _id(),
    Column("key", _TEXT, unique=True, nullable=False),
    *_texts("source", "host"),
    Column("shared", Boolean, nullable=False),
)
"""`shared`: other machines with the same image may have the key."""

CONFIGURATION = Table(
    "configuration",
    METADATA,
    _id(),
    Column("key", _TEXT, unique=True, nullable=False),
    *_texts("kernel", "kernel_version", "preemption", nullable=True),
    Column("settings", JSON, nullable=False),
)
"""`settings`: each of the machine's facts that is a setting, by its dotted name."""

SERIES = Table(
    "series",
    METADATA,
    _id(),
    Column("key", _TEXT, unique=True, nullable=False),
    Column("name", _TEXT, nullable=False, index=True),
    *_texts("probe", "metric", "unit", "load", "deployment", "tool"),
    Column("whole", Boolean, nullable=False),
    Column("labels", JSON, nullable=False),
    Column("parameters", JSON, nullable=False),
)
"""`whole`: whether it stands for all series of a step's main metric together."""

RECORD = Table(
    "record",
    METADATA,
    _id(),
    Column("name", _TEXT, unique=True, nullable=False),
    *_texts("path", "sha256"),
    Column("created", _TEXT, nullable=False, index=True),
    *_texts("ended", "plan", "requirement", "commit", nullable=True),
    *_texts("state", "rtgauge"),
)

LABEL = Table(
    "label",
    METADATA,
    _id(),
    _of("record", owned=True),
    *_texts("key", "value"),
    Index("ix_label_key_value", "key", "value"),
)

STEP = Table(
    "step",
    METADATA,
    _id(),
    _of("record", owned=True),
    Column("name", _TEXT, nullable=False),
    _of("machine"),
    _of("machine", "peer_machine_id", nullable=True),
    _of("configuration"),
    *_texts("boot_id", "worst", nullable=True),
    *_texts("started", "ended", "tool_version", "end_reason"),
    Column("repeat", BigInteger, nullable=False),
    *_numbers("duration_ns"),
    Column("emulated", Boolean, nullable=False),
    Column("answers", JSON, nullable=False),
)
"""`worst`: the highest severity of a mark. `answers`: results that are not distributions."""

RESULT = Table(
    "result",
    METADATA,
    _id(),
    _of("step", owned=True),
    _of("series"),
    *_numbers("number"),
    *_numbers("count", "missed", "lost", "impossible", nullable=False),
    Column("mean_ns", Float),
    Column("std_ns", Float),
    *_numbers(*FIGURES),
    *_numbers(*(f"filled_{name}" for name in FIGURES)),
    Column("lower_bounds", JSON, nullable=False),
)
"""One series of one step. `number`: the series' number in its step; null for the whole."""

MARK = Table(
    "mark",
    METADATA,
    _id(),
    _of("record", owned=True),
    _of("step", nullable=True, owned=True),
    *_numbers("number"),
    *_texts("name", "severity", "detail"),
)

VERDICT = Table(
    "verdict",
    METADATA,
    _id(),
    _of("record", owned=True),
    _of("step", nullable=True, owned=True),
    *_texts("word", "requirement", "reason"),
)
"""`step_id`: null for the verdict on the whole run."""
