"""Normalisation with what follows it: torch's functions, and the kernels run by Triton's interpreter, against float64."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from torch.nn import functional as F

from warpwright.domains.unlearnable.verification import nets
from warpwright.domains.unlearnable.verification.nets.norm import Norm, use_kernels

pytest.importorskip("triton")

INTERPRETED = """
import torch
from torch.nn import functional as F
from warpwright.domains.unlearnable.verification.nets import norm_kernels
from warpwright.domains.unlearnable.verification.nets.norm_kernels import Normalised

def check(shape, adds, relu, dtype, tolerance, programs=528):
    norm_kernels.PROGRAMS = programs
    torch.manual_seed(0)
    last = {"memory_format": torch.channels_last}
    x = (torch.randn(shape) * 2 + 1).to(dtype).contiguous(**last).requires_grad_()
    plus = torch.randn(shape).to(dtype).contiguous(**last).requires_grad_() if adds else None
    weight, bias = torch.rand(shape[1]).add(0.5).requires_grad_(), torch.randn(shape[1]).requires_grad_()
    mean, variance = torch.randn(shape[1]), torch.rand(shape[1]) + 0.5
    known = mean.double(), variance.double()
    y = Normalised.apply(x, weight, bias, mean, variance, plus, relu, 1e-5, 0.1)
    z = F.batch_norm(x.double(), *known, weight.double(), bias.double(), True, 0.1, 1e-5)
    z = z if plus is None else z + plus.double()
    z = z.relu() if relu else z
    gradient = torch.randn(shape).to(dtype)
    leaves = [one for one in (x, weight, bias, plus) if one is not None]
    found = torch.autograd.grad(y, leaves, gradient)
    expected = torch.autograd.grad(z, leaves, gradient.double())
    pairs = [(y, z), (mean, known[0]), (variance, known[1]), *zip(found, expected)]
    assert y.dtype == dtype and all(one.dtype == leaf.dtype for one, leaf in zip(found, leaves))
    worst = max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)
    assert worst < tolerance, (shape, adds, relu, dtype, worst)

check((3, 64, 5, 7), False, True, torch.float32, 2e-6)
check((2, 24, 4, 4), True, True, torch.float32, 2e-6)
check((5, 130, 6, 3), False, False, torch.float32, 2e-6, programs=3)
check((9, 16, 9, 9), True, False, torch.float32, 2e-6, programs=5)
check((7, 80, 1, 1), True, True, torch.float32, 2e-6)
check((4, 32, 8, 8), True, False, torch.bfloat16, 8e-3)
check((4, 32, 8, 8), False, True, torch.bfloat16, 8e-3)

from warpwright.domains.unlearnable.verification.nets import norm
cpu, right = torch.device("cpu"), Normalised.apply
assert norm._agree.__wrapped__(cpu)
Normalised.apply = lambda x, weight, *rest: right(x, 1.05 * weight, *rest)
assert not norm._agree.__wrapped__(cpu)
Normalised.apply = None
assert not norm._agree.__wrapped__(cpu)
"""


@pytest.mark.slow
def test_the_kernels_are_batch_normalisation_addition_and_relu() -> None:
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", INTERPRETED], env=environment, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("relu", [True, False])
def test_without_the_kernels_it_is_torch_s(relu: bool) -> None:
    own, known = Norm(6, relu), torch.nn.BatchNorm2d(6)
    x, plus = torch.randn(4, 6, 3, 3), torch.randn(4, 6, 3, 3)
    expected = known(x) + plus
    assert torch.equal(own(x, plus), F.relu(expected) if relu else expected)
    assert own.state_dict().keys() == known.state_dict().keys() and torch.equal(own.running_var, known.running_var)  # type: ignore[arg-type]
    own.eval(), known.eval()
    assert torch.equal(own(x), F.relu(known(x)) if relu else known(x))


def test_the_switch_returns_what_was() -> None:
    before = use_kernels(False)
    assert use_kernels(before) is False


@pytest.mark.parametrize("name", sorted(nets.NETS))
def test_every_network_uses_it(name: str) -> None:
    with torch.device("meta"):
        net = nets.make(name, 3, 10)
    norms = [module for module in net.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    assert norms and all(isinstance(module, Norm) for module in norms)
    assert not any(isinstance(module, torch.nn.ReLU) for module in net.modules())


@pytest.mark.cuda
def test_on_a_gpu_the_kernels_are_torch_s_within_rounding() -> None:
    """float32, so that only the order of sums differs."""
    torch.manual_seed(0)
    norm = Norm(64).cuda()
    x, plus = (torch.randn(64, 64, 16, 16, device="cuda").contiguous(memory_format=torch.channels_last).requires_grad_() for _ in range(2))
    found = []
    for kernels in (True, False):
        before = use_kernels(kernels)
        norm.running_mean.zero_()  # type: ignore[union-attr]
        y = norm(x, plus)
        use_kernels(before)
        found.append((y, norm.running_mean.clone(), *torch.autograd.grad(y.square().sum(), [x, plus, *norm.parameters()])))  # type: ignore[union-attr]
    for ours, theirs in zip(*found, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-3 * float(theirs.abs().max()))
