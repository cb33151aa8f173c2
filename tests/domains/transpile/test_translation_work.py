"""The work of a translation grows with the source's length, counted in calls of functions, and what is kept of an expression is what it was."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from warpwright.domains import transpile
from warpwright.domains.transpile import ir
from warpwright.errors import WarpwrightError

pytest.importorskip("clang.cindex")

STEP = """  if (i < n) a += x[i] * {0}.5f;
  s[t] = a;
  __syncthreads();
  for (int j = 0; j < 4; j++) a = a * 0.5f + s[(t + j + {0}) & 255];
  float b{0} = a > 1.0f ? a - 1.0f : a;
  a += b{0};
  __syncthreads();
"""


def calls(steps: int) -> int:
    """Return how many calls of functions the translation of a kernel takes."""
    body = "".join(STEP.format(k) for k in range(steps))
    text = f"__global__ void k(float* y, const float* x, int n) {{\n  __shared__ float s[256];\n  int t = threadIdx.x, i = blockIdx.x * 256 + t;\n  float a = 0;\n{body}  y[i] = a;\n}}\n"  # noqa: E501
    events = dict.fromkeys(("call", "c_call", "return", "c_return", "c_exception"), 0)

    def count(frame: object, event: str, argument: object) -> None:
        events[event] += 1

    sys.setprofile(count)
    try:
        transpile.compile_text(text)
    finally:
        sys.setprofile(None)
    return events["call"] + events["c_call"]


def test_work_is_linear_in_the_number_of_barriers() -> None:
    """In a process of its own: in one of a thousand tests profilers of Python 3.11.7 have stood still for good."""
    code = "import test_translation_work as here; print([here.calls(steps) for steps in (2, 12, 24, 48)][1:])"  # headers are read by the first
    folders = os.pathsep.join([str(Path(__file__).parent), str(Path(transpile.__file__).parents[3])])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": folders})
    first, second, third = json.loads(done.stdout)
    assert third - second < 2.2 * (second - first)


def test_plain_leaves_what_is_plain_and_cleans_the_rest() -> None:
    assert ir.plain("a + b") == "a + b"
    assert ir.plain("a  +\n b // c\n+ d /* e */ ;\t") == "a + b + d ; "
    assert ir.plain("a\t") == "a "


def test_an_expression_without_a_change_stays_itself() -> None:
    one = ir.Expr("name", ("a",), 1, "a", 7, "int")
    whole = ir.Expr("binary", (one, " + ", ir.number(2, 1)), 1, "+", None, "int")
    assert whole.map(lambda e: None) is whole
    changed = whole.map(lambda e: ir.number(3, 1) if e is one else None)
    assert ir.text_of(whole) == "a + 2" and ir.text_of(changed) == "3 + 2"
    assert changed.children[1] is whole.children[1] and whole.keys == {7} and not changed.keys


def test_the_collector_goes_on_after_a_refusal() -> None:
    assert gc.isenabled()
    with pytest.raises(WarpwrightError):
        transpile.compile_text("int main() { return 0; }")
    assert gc.isenabled()
