"""The CUDA texts of templates."""

from __future__ import annotations

import re
from pathlib import Path


def text(name: str) -> str:
    """Return the CUDA text of a template with its own headers in place."""
    folder = Path(__file__).parent
    return re.sub(r'#include "(\w+\.h)"', lambda match: text(match[1]), (folder / name).read_text())
