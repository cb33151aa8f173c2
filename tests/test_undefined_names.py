"""The check of generated texts for names that nothing defines, and the texts of templates that hold their own imports."""

from __future__ import annotations

import pytest

from tests.helpers.undefined_names import undefined_names
from warpwright.templates import standalone


@pytest.mark.parametrize("write", [standalone.int8, standalone.recurrent, standalone.flash], ids=lambda write: write.__name__)
def test_a_template_s_module_defines_what_it_reads(write: object) -> None:
    assert callable(write)
    assert undefined_names(write()) == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import os\ndef f():\n    return math.pi + len(os.sep)\n", {"math"}),
        ("class A:\n    B: int = C\n    def f(self):\n        return B\n", {"B", "C"}),
        ("def f():\n    global g\n    g = 1\ndef h(x):\n    return [x + g for x in (1, y)]\n", {"y"}),
        ("import types\nm = types.ModuleType('m')\nm.A = 1\nexec('def f():\\n    return A + B', m.__dict__)\n", {"B"}),
        ("from torch import nn as n\ndef f(a, *b, **c):\n    def g():\n        return a, b, c, n, __name__\n    return g\n", set()),
    ],
)
def test_names_that_nothing_defines(text: str, found: set[str]) -> None:
    assert undefined_names(text) == found
