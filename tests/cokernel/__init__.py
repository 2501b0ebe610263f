# SPDX-License-Identifier: MIT
"""Co-kernels, on guests that are not part of the project."""
