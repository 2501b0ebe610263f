# SPDX-License-Identifier: MIT
"""The folder that a run leaves: its formats, reader and writer, and the engine's stream."""
