# SPDX-License-Identifier: MIT
"""The figures of a record. Each is one Vega-Lite description, used for the page, PNG, SVG and PDF."""
