# SPDX-License-Identifier: MIT
"""Provides the studies: procedures that choose their next steps from results, such as a paper's whole
experiment.
"""
