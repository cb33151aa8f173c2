"""A launch plan in the verifier's sandbox: the C loop is compiled in the warm-up, before programs may no longer be started, and its answers pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.verifier.recipe import verified
from warpwright.base import Source
from warpwright.native import kept, launch_plan
from warpwright.run import Settings

pytestmark = [pytest.mark.slow, pytest.mark.compiler]

TASK = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(64) + 0.5)

    def forward(self, x):
        return x * self.w


def get_inputs():
    return [torch.randn(128, 64)]


def get_init_inputs():
    return []


"""
PLAN = '''
import numpy


def product(kernel, gx, gy, gz, bx, by, bz, shared, stream, places, extra):
    """What the driver would do."""
    x, w, o = (_c.c_uint64.from_address(places[i]).value for i in range(3))
    seen = [numpy.frombuffer((_c.c_float * size).from_address(at), dtype=numpy.float32) for at, size in ((x, 8192), (w, 64), (o, 8192))]
    numpy.multiply(seen[0].reshape(128, 64), seen[1], out=seen[2].reshape(128, 64))
    return 0


driver = _c.CFUNCTYPE(_c.c_int, _c.c_void_p, *[_c.c_uint] * 7, _c.c_void_p, _c.POINTER(_c.c_void_p), _c.c_void_p)(product)


class Kernels:
    def current(self, tensor):
        return 0

    def usable(self, tensor):
        return True

    def stream(self, index):
        return 0

    def handles(self, index):
        return [_c.cast(driver, _c.c_void_p).value, 0, 0, 0, 0], {"product": (1, 1, 1)}

    def overlaps(self, index):
        return False


plan = _LaunchPlan(Kernels(), 3, (("product", 0, ((0, 0), (1, 0), (2, 0))),))


class ModelNew(Model):
    def forward(self, x):
        x, w = x.contiguous(), self.w.contiguous()
        table = plan.of(x)
        if table is None:
            raise RuntimeError("there is no native launch")
        o = torch.empty_strided((128, 64), (64, 1))
        plan.launch(table, x.data_ptr(), w.data_ptr(), o.data_ptr())
        return o
'''


def test_the_loop_is_compiled_in_the_sandbox(tmp_path: Path) -> None:
    file = tmp_path / "scaled.py"
    file.write_text(TASK)
    anew = f"/* {tmp_path} */ typedef int (*clearer)"  # a text that no earlier run has compiled
    loader = kept.text() + launch_plan.loader().replace("typedef int (*clearer)", anew)
    row = verified(Settings(device="cpu").describe(file), Source("python", (("optimized.py", TASK + loader + PLAN),), "ModelNew"), "cpu", 5)
    assert row["status"] == "ok" and row["calls"] > 20 and row["refused"] == [], row
