# SPDX-License-Identifier: MIT
"""The page that shows a run as it goes: what the runner tells becomes documents, which a small server hands
to browsers.
"""
