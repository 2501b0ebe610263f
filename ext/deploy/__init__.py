# SPDX-License-Identifier: MIT
"""Shows and applies deployments of the cores, until they are restored."""
