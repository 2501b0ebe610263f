# SPDX-License-Identifier: MIT
"""The command line: a module a command, each parses its options, calls, and prints."""
