# SPDX-License-Identifier: MIT
"""The record, which is the folder that a run writes: formats, reader, writer, and the engine's stream."""
