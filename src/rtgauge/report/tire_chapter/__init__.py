# SPDX-License-Identifier: MIT
"""The page's chapter about the tire: Garre et al. (2014), sec. 4, with this machine's numbers."""
