# SPDX-License-Identifier: MIT
"""rtgauge: does this Linux machine keep its deadlines?"""

__version__ = "0.1.0"
