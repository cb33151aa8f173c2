"""Candidate against original, case by case: the verdict.

Runs in the parent, which imports neither the task nor the candidate. Bodies follow; names and signatures are settled.
"""

from __future__ import annotations

from warpwright.checks import CHECKS, DISTRIBUTIONS, Check

__all__ = ["CHECKS", "DISTRIBUTIONS", "Check"]
