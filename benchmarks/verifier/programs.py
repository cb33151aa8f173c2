"""The programs that the verifier is tested with, for benchmarks: modules of tests/helpers, which no package holds."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

import corpus as corpus  # noqa: E402
import survivors as survivors  # noqa: E402
