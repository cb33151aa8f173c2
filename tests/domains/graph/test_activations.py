"""Activations that kernels end with, by Triton's interpreter: what torch computes in float64."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from interpreter import INTERPRETER

from warpwright.domains.graph import kernels


@INTERPRETER
def test_gelu_is_as_exact_as_torchs(tmp_path: Path) -> None:
    """Errors of the error function stay below two ulp of 1, and of its result near 0; NaN, Inf and -Inf are as torch has them."""
    path = tmp_path / "activation.py"
    path.write_text("import torch\n" + kernels.text("fused_product") + """

@triton.jit
def both(x, y, z, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(y + at, _erf(tl.load(x + at)))
    tl.store(z + at, _gelu(tl.load(x + at)))


x = torch.cat((torch.linspace(-8, 8, 65529), torch.tensor([float("nan"), float("inf"), -float("inf"), 1e-30, -1e-6, 0.0, 3e38])))
y, z = torch.empty_like(x), torch.empty_like(x)
both[(1,)](x, y, z, 1 << 16)
known = ~x.isnan()
exact = torch.erf(x.double())[known]
error = (y.double()[known] - exact).abs()
assert error.max() < 2.0e-7 and (error <= 2.5e-7 * exact.abs()).all(), (error.max(), (error / exact.abs()).max())
gelu = 0.5 * x * (1.0 + torch.erf(x * 0.5**0.5))  # torch's own is NaN of Inf on some CPUs
torch.testing.assert_close(z, gelu, rtol=1e-6, atol=1e-6, equal_nan=True)
""")
    subprocess.run([sys.executable, "-W", "ignore", str(path)], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250)
