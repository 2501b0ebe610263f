# SPDX-License-Identifier: MIT
"""Records a program for weeks into a folder of limited size, and keeps the worst moment of each culprit."""
