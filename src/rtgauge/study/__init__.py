# SPDX-License-Identifier: MIT
"""Studies: procedures that choose their next steps from results, such as a paper's whole experiment."""
