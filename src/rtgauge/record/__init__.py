# SPDX-License-Identifier: MIT
"""A record is the folder that a run leaves: its formats, reader and writer, and the engine's stream."""
