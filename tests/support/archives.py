# SPDX-License-Identifier: MIT
"""Opens the archives of the tests' own data."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def own_archive(path: Path) -> tarfile.TarFile:
    """Open an archive. It writes only below the folder that it is unpacked into; Python before 3.11.4 cannot
    limit that, and unpacks it anyway.
    """
    archive = tarfile.open(path)  # noqa: SIM115 - the caller closes it
    limited = getattr(tarfile, "data_filter", None)
    if limited is not None:
        archive.extraction_filter = limited
    return archive
