# SPDX-License-Identifier: MIT
"""What Garre et al. (2014), sec. 4, ask of the tire: speed over threads, real-time maps and their frontier, the cost model of a step."""
