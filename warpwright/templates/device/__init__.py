"""Whole operations as CUDA C++, one a file, for any program that has one: kernels and a host function that launches them.

A file begins with what it does and its least traffic or work, then its parameters: `#define NAME value  // tune: values`, where the values are legal.
The texts run on a GPU and, translated, on a CPU (tests/templates/test_device_templates.py). Memory of their own is allocated on the stream and freed
on it; the stream is written as 0, in whose place a program puts its caller's.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path

from warpwright.errors import NotApplicable

NAMES = (
    "prefix_sum", "radix_sort", "top_k", "attention", "normal_equations", "product", "product_tf32", "normal_equations_tensor", "attention_tf32",
    "window_product",
)  # fmt: skip

_PARAMETER = re.compile(r"^(#define (WW_\w+) )(\d+)( *// tune: ([\d ]+).*)$", re.M)


@functools.cache
def original(name: str) -> str:
    """Return a template as its file has it."""
    if name not in NAMES:
        raise NotApplicable(f"expected a template of {', '.join(NAMES)}, saw {name!r}")
    return Path(__file__).with_name(f"{name}.cu").read_text()


def parameters(name: str) -> dict[str, tuple[int, ...]]:
    """Return a template's parameters and the legal values of each, its own first."""
    matches = _PARAMETER.finditer(original(name))
    return {match[2]: tuple(dict.fromkeys((int(match[3]), *map(int, match[5].split())))) for match in matches}


def text(name: str, values: Mapping[str, int] | None = None) -> str:
    """Return a template with parameters set; raise NotApplicable for a value that is not legal."""
    legal, chosen = parameters(name), dict(values or {})
    for parameter, value in chosen.items():
        if value not in legal.get(parameter, ()):
            raise NotApplicable(f"expected {parameter} of {legal.get(parameter, 'no template')}, saw {value}")
    return _PARAMETER.sub(lambda match: f"{match[1]}{chosen.get(match[2], match[3])}{match[4]}", original(name))
