# SPDX-License-Identifier: MIT
"""Deployments: how a machine's cores are used (Delgado & Choi 2020, table 1), as lists of settings."""
