# SPDX-License-Identifier: MIT
"""Checks the metadata of a Parquet file before the file is decoded, because a page of a few bytes may expand
to a billion values.

It reads the footer and the page headers (the format's `parquet.thrift`, in Thrift's compact protocol), but no
values.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import Any, BinaryIO, cast

MAGIC = b"PAR1"
MOST_FOOTER = 64 << 20
MOST_FIELDS = 1_000_000
"""The most numbers, texts and lists that a footer may contain."""
MOST_NESTED = 16
PAGE_HEADER_BYTES = 1 << 16
FIXED_VALUES, VALUES_A_BYTE = 1_000_000, 100
"""A file may decode to this many values, and to this many more for each byte of its columns. Real files have
fewer than ten values per byte, because a window's numbers hardly compress.
"""
FIXED_BYTES, BYTES_A_BYTE = 64 << 20, 100
MOST_VALUES, MOST_BYTES = 50_000_000, 512 << 20
"""The most values and bytes that a file of any size may decode to. The blocks of long steps need at most a
third of these.
"""
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
DICTIONARY, DATA, DATA_V2 = 2, 0, 3


class _Thrift:
    """Decodes a struct of the compact protocol into a dict from field numbers to values."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0
        self._fields = 0

    def _byte(self) -> int:
        if self.at >= len(self._data):
            raise ValueError("its metadata is cut short")
        self.at += 1
        return self._data[self.at - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a number in its metadata has more than 64 bits")

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _skip(self, length: int) -> bytes:
        if length > len(self._data) - self.at:
            raise ValueError("its metadata is cut short")
        self.at += length
        return self._data[self.at - length : self.at]

    def _value(self, kind: int, depth: int) -> Any:
        self._fields += 1
        if self._fields > MOST_FIELDS or depth > MOST_NESTED:
            raise ValueError("its metadata is too large")
        match kind:
            case 1 | 2:
                return kind == TRUE
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 7:
                return self._skip(8)
            case 8:
                return self._skip(self._varint())
            case 9 | 10:
                head = self._byte()
                length = head >> 4 if head >> 4 < 15 else self._varint()
                if length > len(self._data) - self.at:
                    raise ValueError("its metadata is cut short")
                # In a list, each boolean takes a byte.
                return [
                    self._value(BYTE if head & 15 in {TRUE, FALSE} else head & 15, depth + 1)
                    for _ in range(length)
                ]
            case 12:
                return self.struct(depth + 1)
            case _:
                raise ValueError("its metadata contains a field of an unknown type")

    def struct(self, depth: int = 0) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = self._value(head & 15, depth)
        return fields


def _number(fields: dict[int, Any], field: int) -> int:
    value = fields.get(field)
    if not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise ValueError("its metadata lacks a required number")
    return value


def _structs(fields: dict[int, Any], field: int) -> list[dict[int, Any]]:
    value = fields.get(field)
    if not isinstance(value, list) or not all(isinstance(part, dict) for part in cast("list[Any]", value)):
        raise ValueError("its metadata lacks a required list")
    return cast("list[dict[int, Any]]", value)


def _struct(fields: dict[int, Any], field: int) -> dict[int, Any]:
    value = fields.get(field)
    if not isinstance(value, dict):
        raise ValueError("its metadata lacks a required structure")
    return cast("dict[int, Any]", value)


def _pages(file: BinaryIO, column: dict[int, Any], end: int) -> tuple[int, int]:
    """Return (values, decompressed bytes) of all pages of a column chunk. Raises ValueError if it
    is damaged.
    """
    offset, left = min(_number(column, field) for field in (9, 11) if field in column), _number(column, 7)
    if offset + left > end:
        raise ValueError("a column lies beyond the end of the file")
    values = unpacked = 0
    while left > 0:
        file.seek(offset)
        reader = _Thrift(file.read(min(left, PAGE_HEADER_BYTES)))
        header = reader.struct()
        size = reader.at + _number(header, 3)
        match header.get(1):
            case 0:
                values += _number(_struct(header, 5), 1)
            case 2:
                _number(_struct(header, 7), 1)
            case 3:
                values += _number(_struct(header, 8), 1)
            case _:
                raise ValueError("it contains a page of an unknown type")
        unpacked += _number(header, 2)
        offset, left = offset + size, left - size
    if left:
        raise ValueError("its pages contradict the lengths of its columns")
    return values, unpacked


def check_parquet(file: BinaryIO, columns: Collection[str]) -> None:
    """Check that a Parquet file has these columns.

    Raises ValueError if its parts do not fit together or it would decode to far more than its size, and
    OSError if it cannot be read.
    """
    size = file.seek(0, 2)
    file.seek(max(size - 8, 0))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if size < 12 or tail[4:] != MAGIC or length > min(size - 12, MOST_FOOTER):
        raise ValueError("it is not a Parquet file, or it is cut short")
    end = size - 8 - length
    file.seek(end)
    footer = _Thrift(file.read(length)).struct()
    schema = _structs(footer, 2)
    if len(schema) > 4 * len(columns) + 1 or _number(schema[0], 5) != len(columns):
        raise ValueError("it has other columns")
    rows = values = unpacked = 0
    chunks: list[tuple[int, int]] = []
    for group in _structs(footer, 4):
        group_rows = _number(group, 3)
        rows += group_rows
        for chunk in _structs(group, 1):
            column = _struct(chunk, 3)
            path = column.get(3)
            if chunk.get(1) is not None or not isinstance(path, list) or not path:
                raise ValueError("a column lies beyond the end of the file")
            column_values, column_unpacked = _pages(file, column, end)
            first = min(_number(column, field) for field in (9, 11) if field in column)
            chunks.append((first, first + _number(column, 7)))
            nested = len(cast("list[Any]", path)) > 1
            if column_values != _number(column, 5) or (
                column_values < group_rows if nested else column_values != group_rows
            ):
                raise ValueError("its columns have different lengths")
            values += column_values
            unpacked += column_unpacked
    if rows != _number(footer, 3):
        raise ValueError("its columns have different lengths")
    chunks.sort()
    if any(after < before for (_, before), (after, _) in pairwise(chunks)):
        raise ValueError("its columns overlap")
    packed = sum(
        after - before for before, after in chunks
    )  # the file's own size would count padding and holes, which have no values
    most_values, most_bytes = (
        min(MOST_VALUES, FIXED_VALUES + VALUES_A_BYTE * packed),
        min(MOST_BYTES, FIXED_BYTES + BYTES_A_BYTE * packed),
    )
    if values > most_values or unpacked > most_bytes:
        raise ValueError(f"its {packed} bytes would expand to {values} values")
