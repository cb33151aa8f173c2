"""Outputs that are zero to rounding: the gradient of a bias before a batch norm is noise, and says nothing against the step that it is part of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from warpwright.base import Case, Errors
from warpwright.tasks import taskfile
from warpwright.verifier.judge import oracle
from warpwright.verifier.judge.original.reference import Original

NORMED = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n, self.b = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 4)

    def forward(self, x):
        return self.b(torch.relu(self.n(self.a(x))).mean((2, 3)))


def get_inputs():
    return [torch.randn(4, 3, 10, 10)]


def get_init_inputs():
    return []
"""


def test_a_step_with_such_a_gradient_is_conditioned(tmp_path: Path) -> None:
    path = tmp_path / "normed.py"
    path.write_text(NORMED)
    original = Original(taskfile.describe(path, backward=True), "cpu", 7, 1 << 30)
    answer = original.answer(Case("nominal", 3), 0)
    noise = [leaf.path for leaf in answer.leaves if oracle.is_noise(leaf.original, leaf.scale)]
    assert noise == ["out[1][2]"]  # the results, then the gradients: of x, of the convolution's weight and bias, ...
    assert answer.finite
    assert answer.conditioned


def test_what_is_noise_may_be_other_noise_and_nothing_larger() -> None:
    scale, original = oracle.Scale(1e-17, 1e-17, 1e-17, 64), Errors(3e-8, 1e-8, 1e-8)
    assert oracle.is_noise(original, scale)
    allowed = oracle.tolerance(original, scale, torch.float32)
    assert oracle.excess(Errors(9e-8, 3e-8, 3e-8), allowed) < 1
    assert oracle.excess(Errors(1e-6, 1e-7, 1e-7), allowed) > 1


def test_what_is_only_badly_conditioned_is_no_noise() -> None:
    scale, original = oracle.Scale(1.0, 1.0, 1.0, 64), Errors(0.5, 0.3, 0.3)
    assert not oracle.is_noise(original, scale)
    assert oracle.tolerance(original, scale, torch.float32).rms < 2.1 * 0.3


def flushed(values: torch.Tensor) -> torch.Tensor:
    return torch.where(values.abs() < torch.finfo(torch.float32).tiny, 0, values)


def test_additions_to_memory_of_a_gpu_may_lose_what_they_flush_to_zero() -> None:
    generator = torch.Generator().manual_seed(3)
    smallest = torch.finfo(torch.float32).tiny
    sizes = 0.9 * smallest * torch.rand(8, 1, generator=generator, dtype=torch.float64)
    terms = torch.randn(8, 2048, generator=generator, dtype=torch.float64) * sizes
    exact, summed = terms.sum(0), torch.zeros(2048, dtype=torch.float64)
    for term in terms:
        summed = flushed(summed + flushed(term))
    error, scale, original = oracle.errors_of(summed, exact), oracle.scale_of(exact), Errors(1e-45, 1e-45, 1e-45)
    assert oracle.excess(error, oracle.tolerance(original, scale, torch.float32)) > 1
    on_gpu = replace(scale, on_gpu=True)
    assert oracle.excess(error, oracle.tolerance(original, on_gpu, torch.float32)) < 0.5
    for dtype in (torch.float16, torch.bfloat16, torch.float64):  # their additions flush nothing, and float16's numbers below it are no small ones
        assert oracle.tolerance(original, on_gpu, dtype) == oracle.tolerance(original, scale, dtype)
