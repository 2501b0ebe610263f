# SPDX-License-Identifier: MIT
"""The base of all models in a record."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", defer_build=True)
