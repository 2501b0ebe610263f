# SPDX-License-Identifier: MIT
"""Checks the answers of the engine's agent (docs/formats/agent.md): a target may send anything instead."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from rtgauge.input_file import parse_json
from rtgauge.target.file_batch import Files


def answer_of(text: bytes) -> dict[str, Any] | None:
    """Parse a line as a JSON object; None if it is not one."""
    try:
        line = parse_json(text)
    except ValueError:
        return None
    return cast("dict[str, Any]", line) if isinstance(line, dict) else None


def answers_of(output: bytes) -> list[dict[str, Any]]:
    """Parse every line as a JSON object. Raises ValueError if one is something else."""
    lines = [answer_of(line) for line in output.split(b"\n") if line]
    answers = [line for line in lines if line is not None]
    if len(answers) < len(lines):
        raise ValueError("a line is not a JSON object")
    return answers


class FilesRead(NamedTuple):
    """The answer of the verb `read`: the files, and CLOCK_MONOTONIC on the target."""

    time_ns: int
    files: Files


def files_of(output: bytes) -> FilesRead:
    """Parse an answer of the verb `read`. Raises ValueError if it is something else."""
    answer = answer_of(output) or {}
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
                raise ValueError("a file has a value of another kind")
    return FilesRead(time_ns, Files(cast("dict[str, Any]", files)))
