# SPDX-License-Identifier: MIT
"""Deployments: how the cores of a machine are used (Delgado & Choi 2020, table 1), as lists of settings."""
