"""How a rewrite is tested: it fires, and what it computes is what the model computes, in float64 and by the verifier's rule in float32."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from warpwright.domains.graph.capture.model import from_module
from warpwright.domains.graph.ir import GraphIR, copy, run

KINDS = ("normal", "scaled", "negated", "offset", "zeros", "heavy", "spikes")


def draw(kind: str, size: Sequence[int], seed: int) -> torch.Tensor:
    """Return values of one of the verifier's kinds of distribution."""
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(*size, generator=g)
    if kind == "spikes":
        return torch.where(torch.rand(*size, generator=g) < 0.01, 100 * z, torch.zeros(()))
    heavy = z / torch.rand(*size, generator=g).clamp_min(1e-3)
    return {"normal": z, "scaled": 30 * z, "negated": -z.abs(), "offset": z + 100, "zeros": 0 * z, "heavy": heavy}[kind]


def randomised(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """Return the model with random parameters and buffers; variances stay positive."""
    g = torch.Generator().manual_seed(seed)
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            values = torch.rand(tensor.shape, generator=g) + 0.5 if "var" in name else torch.randn(tensor.shape, generator=g) * 0.5
            tensor.copy_(values)
    return model


def fixpoint(ir: GraphIR, techniques: Iterable[Any], limit: int = 60) -> tuple[GraphIR, list[str]]:
    """Apply whatever applies, in the order of `techniques`, until nothing does; return the names of what fired."""
    fired: list[str] = []
    techniques = tuple(techniques)
    while len(fired) < limit:
        action = next((a for t in techniques for a in t.sites(ir)), None)
        if action is None:
            return ir, fired
        ir = next(t for t in techniques if t.name == action.technique).apply(ir, action)
        fired.append(action.technique)
    raise AssertionError(f"no fixpoint after {limit} rewrites: {fired}")


def state_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return parameters and buffers by path, copied."""
    return {name: t.detach().clone() for name, t in (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))}


def _widened(ir: GraphIR) -> GraphIR:
    """Return the graph with every conversion to float32 a conversion to float64."""
    wide = copy(ir)
    for node in wide.graph.nodes:
        node.args = tuple(torch.float64 if a is torch.float32 else a for a in node.args)
        node.kwargs = {k: torch.float64 if a is torch.float32 else a for k, a in node.kwargs.items()}
    return wide


def double_run(ir: GraphIR, inputs: Sequence[Any], state: dict[str, torch.Tensor]) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """Return the results in float64 and the state after the call."""
    wide = {k: v.double() if v.is_floating_point() else v.clone() for k, v in state.items()}
    cast = pytree.tree_map(lambda x: x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x, list(inputs))
    constants = {k: v.double() if v.is_floating_point() else v for k, v in ir.constants.items()}
    out = run(dataclasses.replace(_widened(ir), constants=constants), cast, wide, flat=True)
    return list(out), wide


def assert_equal_in_double(before: GraphIR, after: GraphIR, inputs: Sequence[Any], model: torch.nn.Module, tolerance: float = 1e-10) -> None:
    """Both graphs give the same results and leave the same state, in float64."""
    a, state_a = double_run(before, inputs, state_of(model))
    b, state_b = double_run(after, inputs, state_of(model))
    for x, y in zip(a, b, strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        torch.testing.assert_close(y, x, rtol=tolerance, atol=tolerance * float(x.abs().max().clamp_min(1.0)))
    for name, x in state_a.items():
        torch.testing.assert_close(state_b[name], x, rtol=tolerance, atol=tolerance, msg=lambda m, name=name: f"{name}: {m}")


def errors(x: torch.Tensor, truth: torch.Tensor) -> tuple[float, float, float]:
    """Return maximal, RMS and centred error."""
    difference = x.double() - truth
    return float(difference.abs().max()), float(difference.square().mean().sqrt()), float((difference - difference.mean()).square().mean().sqrt())


def assert_numerically_sound(
    before: GraphIR, after: GraphIR, size: Sequence[int], model: torch.nn.Module, kinds: Sequence[str] = KINDS
) -> None:
    """In float32 the rewritten graph errs at most twice as much as the original against float64, plus a few ulp."""
    for number, kind in enumerate(kinds):
        inputs = [draw(kind, size, number)]
        truth, wide = double_run(before, inputs, state_of(model))
        state_a, state_b = state_of(model), state_of(model)
        a = run(before, inputs, state_a, flat=True)
        b = run(after, inputs, state_b, flat=True)
        pairs = [*zip(a, b, truth, strict=True), *((state_a[n], state_b[n], wide[n]) for n in wide if wide[n].is_floating_point())]
        for x, y, t in pairs:
            floor = 4 * torch.finfo(torch.float32).eps * float(t.abs().max())
            for one, other, name in zip(errors(x, t), errors(y, t), ("max", "rms", "centred"), strict=True):
                assert other <= 2 * one + floor, f"{kind}, {name} error: original {one:.3e}, rewritten {other:.3e}, floor {floor:.3e}"


def captured(model: torch.nn.Module, *inputs: torch.Tensor) -> GraphIR:
    """Return the model's graph."""
    return from_module(model, inputs)
