# SPDX-License-Identifier: MIT
"""Files of this machine in the shape that the engine's `read` gives them."""

from __future__ import annotations

import base64
import errno
import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtgauge.target.file_batch import Files

if TYPE_CHECKING:
    from collections.abc import Sequence


def read_local(paths: Sequence[str]) -> Files:
    """Each path, globs expanded; a glob that matches nothing is an ENOENT under its own name."""
    files: dict[str, dict[str, Any]] = {}
    for pattern in paths:
        actual = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern]  # noqa: PTH207 - Path.glob raises where a process of /proc ends meanwhile
        for path in actual or [pattern]:
            files[path] = _read_file(Path(path))
    return Files(files)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        if path.is_dir():
            return {"directory": sorted(entry.name for entry in path.iterdir())}
        content = path.read_bytes()
    except OSError as error:
        return {"error": errno.errorcode.get(error.errno or 0, "EIO")}
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}
