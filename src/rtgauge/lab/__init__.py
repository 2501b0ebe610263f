# SPDX-License-Identifier: MIT
"""Virtual machines with real kernels: builds the images, boots and stops the guests."""
