# SPDX-License-Identifier: MIT
"""Task sets under fixed priorities: model, analysis, tables and figures."""
