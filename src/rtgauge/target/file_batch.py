# SPDX-License-Identifier: MIT
"""Finds values in the files that the engine's verb `read` returned. No content of a file raises an
error.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from rtgauge.input_file import json_object
from rtgauge.units import format_cpu_list, parse_cpu_list

LARGEST_UNPACKED = 4 << 20


def integer(text: str | None) -> int | None:
    """Parse a decimal number of up to 19 digits; None for any other text."""
    text = (text or "").strip()
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,19}", text) else None


def cpu_list(text: str | None) -> list[int] | None:
    """Parse a CPU list as the kernel prints it; [] if it is empty or `(null)`, None for any other text."""
    if text is None:
        return None
    if text in ("", "(null)"):
        return []
    try:
        return parse_cpu_list(text)
    except ValueError:
        return None


def shortest_cpu_list(text: str | None) -> str | None:
    """Return a CPU list in its shortest form; None for any other text."""
    cpus = cpu_list(text)
    return None if cpus is None else format_cpu_list(cpus)


def chosen(text: str | None) -> str | None:
    """Return the selected word, `"madvise"` of `"always [madvise] never"` or `"full"` of `"(full) lazy"`; any
    other text stays unchanged.
    """
    match = re.search(r"\[([^\[\]\s]{1,64})\]|(?<!\S)\(([^()\s]{1,64})\)(?!\S)", text or "")
    return (match[1] or match[2]) if match else text


class Files(Mapping[str, Mapping[str, Any]]):
    """The files that `read` returned, each as {"text"}, {"base64"}, {"directory"} or {"error"}."""

    def __init__(self, files: Mapping[str, Any] = MappingProxyType({})) -> None:
        # A target may send anything, so drop entries of the wrong shape.
        self._files: dict[str, dict[str, Any]] = {
            path: file for path, file in files.items() if isinstance(file, dict)
        }

    def __getitem__(self, path: str) -> Mapping[str, Any]:
        return self._files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __or__(self, later: Mapping[str, Any]) -> Files:
        """Return the files of both. If both have a path, the file of `later` counts."""
        return Files({**self._files, **later})

    def text(self, path: str) -> str | None:
        """Return the file's text without white space and NUL bytes at both ends; None if it could not be
        read.
        """
        file = self._files.get(path, {})
        text = file.get("text")
        if not isinstance(text, str):
            # Strings from the device tree end with NUL, and may arrive as bytes.
            try:
                text = base64.b64decode(str(file["base64"]), validate=True).decode()
            except (KeyError, ValueError):
                return None
        return text.strip("\0 \t\r\n")

    def number(self, path: str) -> int | None:
        """Return the number in a file; None if the file is missing or holds no number."""
        return integer(self.text(path))

    def exists(self, path: str) -> bool:
        """Return whether the path could be read as a file or a folder."""
        file = self._files.get(path, {})
        return any(kind in file for kind in ("text", "base64", "directory"))

    def entries(self, folder: str) -> list[str]:
        """Return the names in a folder; empty if it could not be read."""
        names = self._files.get(folder, {}).get("directory")
        return [str(name) for name in cast("list[object]", names)] if isinstance(names, list) else []

    def texts(self) -> list[str]:
        """Return the text of every file that could be read."""
        return [text for path in self._files if (text := self.text(path)) is not None]

    def error(self, path: str) -> str | None:
        """Return why the path could not be read; None if it was read, or was not requested."""
        error = self._files.get(path, {}).get("error")
        return error if isinstance(error, str) else None

    def matching(self, pattern: str) -> Iterator[tuple[re.Match[str], str]]:
        """Yield (match, text) for every file whose whole path matches the regular expression, sorted
        naturally by path.

        The expression must not have `|` outside brackets.
        """
        compiled = re.compile(pattern)
        # A large machine has ten thousand files. Comparing a literal prefix first is cheaper.
        start = re.match(r"[A-Za-z0-9_/]*(?=[^?*{]|$)", pattern)
        paths = [path for path in self._files if path.startswith(start[0])] if start else self._files
        matches = [
            (match, text)
            for path in paths
            if (match := compiled.fullmatch(path)) and (text := self.text(path)) is not None
        ]
        return iter(sorted(matches, key=lambda pair: _natural(pair[0][0])))

    def unpacked(self, path: str) -> str | None:
        """Return the text of a gzip file; None if it is missing, damaged or larger than 4 MiB."""
        packed = self._files.get(path, {}).get("base64")
        if not isinstance(packed, str):
            return None
        try:
            unpacker = zlib.decompressobj(wbits=31)
            content = unpacker.decompress(base64.b64decode(packed, validate=True), LARGEST_UNPACKED)
        except (ValueError, zlib.error):
            return None
        return content.decode(errors="replace") if unpacker.eof else None


def _natural(path: str) -> list[tuple[int, int, str]]:
    """Return a sort key that puts cpu2 before cpu10."""
    return [
        (0, int(part), "") if re.fullmatch(r"[0-9]{1,9}", part) else (1, 0, part)
        for part in re.split(r"([0-9]{1,9})", path)
    ]


def glob_pattern(glob: str) -> str:
    """Turn a shell pattern (`*`, `?`, `[...]`) into a regular expression. No wildcard matches `/`."""
    parts = re.split(r"(\*|\?|\[[^\]/]+\])", glob)
    signs = {"*": "[^/]*", "?": "[^/]"}
    return "".join(
        signs.get(part, part if part.startswith("[") and part.endswith("]") else re.escape(part))
        for part in parts
    )


Read = Callable[[Iterable[str]], Files]
"""Reads files and globs on a target in one batch, like `Target.read`."""


class FilesRead(NamedTuple):
    """The answer of the verb `read`: the files, and CLOCK_MONOTONIC on the target."""

    time_ns: int
    files: Files


def files_of(output: bytes) -> FilesRead:
    """Parse an answer of the verb `read`. Raises ValueError for any other output."""
    answer = json_object(output) or {}
    time_ns, files = answer.get("time_ns"), answer.get("files")
    if not isinstance(time_ns, int) or isinstance(time_ns, bool) or not isinstance(files, dict):
        raise ValueError("it has no time, or no files")
    for file in cast("dict[str, object]", files).values():
        if not isinstance(file, dict):
            raise ValueError("a file is not an object")
        for name, value in cast("dict[str, object]", file).items():
            listed = isinstance(value, list) and all(
                isinstance(entry, str) for entry in cast("list[object]", value)
            )
            if (name == "directory" and not listed) or (
                name in {"text", "base64", "link"} and not isinstance(value, str)
            ):
                raise ValueError("a file has a value of the wrong type")
    return FilesRead(time_ns, Files(cast("dict[str, Any]", files)))
