# SPDX-License-Identifier: MIT
"""The base of every model of a record."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Base model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", defer_build=True)
