# SPDX-License-Identifier: MIT
"""What a target is (facts), what changed on it over a step (changes), and the doubts that follow (marks)."""
