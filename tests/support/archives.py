# SPDX-License-Identifier: MIT
"""Opens the archives of the tests' own data."""

from __future__ import annotations

import tarfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@contextmanager
def own_archive(path: Path) -> Generator[tarfile.TarFile]:
    """Open an archive that unpacks nothing outside the target folder. Python before 3.11.4 has no such limit."""
    with tarfile.open(path) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extraction_filter = tarfile.data_filter
        yield archive
