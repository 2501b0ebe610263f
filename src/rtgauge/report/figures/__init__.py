# SPDX-License-Identifier: MIT
"""The figures. Each is one Vega-Lite description that serves the page, PNG, SVG and PDF."""
