"""LSTM, GRU and plain recurrent networks as one persistent kernel, whose weights stay on the chip. GPUs from sm_80 on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.capture.recurrent import NAMESPACE, PERSISTENT
from warpwright.domains.graph.cuda.plan import MULTIPROCESSORS
from warpwright.domains.graph.ir import GraphIR, edit
from warpwright.errors import NotApplicable
from warpwright.space import Traits
from warpwright.templates import recurrent as template

SHARED = 227 * 1024
"""Bytes of shared memory that a block may have; on a GPU with less, or with fewer multiprocessors, torch runs what does not fit."""


@dataclass(frozen=True)
class RecurrentCuda:
    """lstm(x, (h, c), W), gru, rnn_tanh, rnn_relu  ->  one launch for all steps of as many layers as fit on the chip.

    Float32, one length, no projections, at most 64 sequences. Blocks keep their rows of the weights in registers and shared memory, and exchange
    the hidden state through the outputs in the L2 cache (templates/recurrent.cu). torch launches one product or more for each step of each layer.
    The parameters are a `Way`. Sums in another order.
    """

    name: str = "recurrent_cuda"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(Action("cuda_graph"),))

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield an action for each way that makes another plan, for all networks together."""
        if ir.takes_kernels:
            seen: list[Any] = []
            for way in PERSISTENT:
                plans = [_plans(node, way) for node in _calls(ir)]
                if any(plans) and plans not in seen:
                    seen.append(plans)
                    yield Action(self.name, params=tuple(way._asdict().items()))

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every network that fits replaced."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a recurrent network in float32 whose weights fit on the chip", f"not {action}")
        way = template.Way(**dict(action.params))  # type: ignore[arg-type]
        e = edit(ir)
        for name in [node.name for node in _calls(ir) if _plans(node, way)]:
            node = e.node(name)
            node.replace_all_uses_with(e.before(node).call(PERSISTENT[way], _kind(node), *node.args))
        return e.finish()


def _calls(ir: GraphIR) -> list[fx.Node]:
    return [node for node in ir.graph.nodes if node.op == "call_function" and getattr(node.target, "namespace", "") == NAMESPACE]


def _kind(node: fx.Node) -> str:
    return str(node.target._schema.name.rpartition("::")[2])  # type: ignore[union-attr]


def _plans(node: fx.Node, way: template.Way) -> list[tuple[int, template.Tiles]] | None:
    """Return which layers go in one launch each on a GPU of MULTIPROCESSORS; None where the weights of a layer do not fit on the chip."""
    x, hx, params = ([arg.meta["val"] for arg in given] for given in ([node.args[0]], node.args[1], node.args[2]))  # type: ignore[union-attr]
    has_biases, layers, _, _, bidirectional, batch_first = node.args[3:]
    alike = len({state.shape for state in hx}) == 1 and all(t.dtype == torch.float32 for t in (*x, *hx, *params))
    if x[0].dim() != 3 or not x[0].numel() or not alike:
        return None
    net = template.Network(template.KINDS.index(_kind(node)), hx, params, has_biases, layers, bidirectional, batch_first)  # type: ignore[arg-type]
    return template.groups(net, x[0].shape[0 if batch_first else 1], template.Chip(MULTIPROCESSORS, SHARED, ""), way)


TECHNIQUES = (RecurrentCuda(),)
