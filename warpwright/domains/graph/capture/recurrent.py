"""LSTM, GRU and plain recurrent networks as one operator each: torch.export would unroll them step by step.

512 steps of 6 layers took 50 s to export and gave a graph of 40 000 nodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from warpwright.errors import CaptureError
from warpwright.templates import standalone
from warpwright.templates.recurrent import Way

NAMESPACE = "warpwright_recurrent"

KINDS = ("lstm", "gru", "rnn_tanh", "rnn_relu")

_OPTIONS = "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first"


def _shapes(x: torch.Tensor, hidden: Sequence[torch.Tensor], layers: int, bidirectional: bool, batch_first: bool) -> tuple[torch.Tensor, ...]:
    """Return results of the shapes and strides that torch gives: the steps' outputs lie in memory time by time."""
    directions = 2 if bidirectional else 1
    width = hidden[0].shape[-1] * directions
    if x.dim() == 2:  # one sequence without a batch
        outputs = x.new_empty(x.shape[0], width)
    else:
        steps, batch = (x.shape[1], x.shape[0]) if batch_first else (x.shape[0], x.shape[1])
        outputs = x.new_empty(steps, batch, width)
        outputs = outputs.transpose(0, 1) if batch_first else outputs
    return outputs, *(torch.empty_like(state, memory_format=torch.contiguous_format) for state in hidden)


def _define(name: str) -> None:
    """Define the operator of one kind: what it computes is torch's own function of the name."""
    states = 2 if name == "lstm" else 1
    results = ", ".join(["Tensor"] * (1 + states))
    torch.library.define(f"{NAMESPACE}::{name}", f"(Tensor input, Tensor[] hx, Tensor[] params, {_OPTIONS}) -> ({results})")

    def run(x: torch.Tensor, hx: Sequence[torch.Tensor], params: Sequence[torch.Tensor], *options: Any) -> tuple[torch.Tensor, ...]:
        function: Callable[..., tuple[torch.Tensor, ...]] = getattr(torch._VF, name)  # type: ignore[attr-defined]
        return tuple(function(x, tuple(hx) if states == 2 else hx[0], list(params), *options))

    def shapes(x: torch.Tensor, hx: Sequence[torch.Tensor], params: Sequence[torch.Tensor], *options: Any) -> tuple[torch.Tensor, ...]:
        _, layers, _, _, bidirectional, batch_first = options
        return _shapes(x, hx, layers, bidirectional, batch_first)

    torch.library.impl(f"{NAMESPACE}::{name}", ("CPU", "CUDA"))(run)
    torch.library.register_fake(f"{NAMESPACE}::{name}")(shapes)


for _kind in KINDS:
    _define(_kind)


def as_one(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a recurrent network's call as one operator's; None for any other call.

    Raise CaptureError for sequences that are packed, and for dropout between layers, which draws random numbers.
    """
    name = getattr(function, "__name__", "")
    if name not in KINDS or kwargs or len(args) != 9 or not isinstance(args[0], torch.Tensor):
        return None
    x, hidden, params, *options = args
    if not isinstance(params, list | tuple):
        raise CaptureError(f"expected sequences of one length for {name}, saw packed ones")
    if options[3] and options[2]:
        raise CaptureError(f"{name} has dropout of {options[2]} between its layers, which draws random numbers: call .eval()")
    hx = list(hidden) if isinstance(hidden, list | tuple) else [hidden]
    return getattr(getattr(torch.ops, NAMESPACE), name)(x, hx, list(params), *options)


class Persistent:
    """The graph's name for the generated function of a recurrent network that is one launch of a persistent kernel, or one a layer.

    It takes the operator's arguments, after the name of its kind.
    """

    shared_text = standalone.recurrent()

    def __init__(self, way: Way) -> None:
        self.way = way
        self.__name__ = "_".join(["recurrent_network", *([] if way == Way() else map(str, map(int, way)))])

    def __call__(self, name: str, *arguments: Any) -> tuple[torch.Tensor, ...]:
        """Return what the operator of that name does."""
        return tuple(getattr(getattr(torch.ops, NAMESPACE), name)(*arguments))

    def python_text(self) -> str:
        """Return the function's text, for the generated file."""
        called = f"_recurrent.network(*arguments, way=_recurrent.{self.way})"
        return f'\ndef {self.__name__}(*arguments):\n    """The weights stay on the chip for all steps."""\n    return {called}\n'


PERSISTENT = {way: Persistent(way) for way in itertools.starmap(Way, itertools.product((1, 2, 4), (False, True), (12, 8)))}
"""In the order of trial: on an H200 12 warps were better than 8 in seven of seven networks where they make another plan, by 1.02 to 1.26."""

STEP, SEQUENCE = 0.2, 0.07
"""Steps of a layer of cuDNN's, in a CUDA graph, in the time of one of the persistent kernel's: at least, and for each sequence. On an H200 0.21 with
one, 0.57 with 8, 1.5 with 16 (two layers), 1.7 with 32 and 6.2 with 64 (two layers)."""
SMALL, SMALL_STEP = 64, 0.08
"""Up to so many units cuDNN has a kernel of one launch for a layer (one sequence: 0.39 of the persistent kernel's time); its step, of another's."""


def launches(node: fx.Node) -> int:
    """Return how many kernels a recurrent network's call launches at least, which is one a step of each layer and direction; 0 for another call.

    For the persistent kernel, how many would take as long.
    """
    arguments, persistent = node.args, isinstance(node.target, Persistent)
    if persistent:
        arguments = node.args[1:]
    elif getattr(node.target, "namespace", "") != NAMESPACE:
        return 0
    x, (layers, bidirectional, batch_first) = arguments[0], (arguments[at] for at in (4, 7, 8))
    shape = x.meta["val"].shape  # type: ignore[union-attr]
    steps, layers = int(shape[1 if batch_first and len(shape) == 3 else 0]), int(layers)  # type: ignore[call-overload, arg-type]
    if persistent:
        state = arguments[1][0].meta["val"].shape  # type: ignore[index, union-attr]
        step = max(STEP, SEQUENCE * int(state[-2])) / (SMALL_STEP if int(state[-1]) <= SMALL else 1.0)
        return int(step * (steps * layers if bidirectional else steps + layers))
    return steps * layers * (2 if bidirectional else 1)


def text(target: Any, arguments: Sequence[str]) -> str:
    """Return the Python text of a call; `arguments` are the texts of the operator's."""
    name = target._schema.name.rpartition("::")[2]
    x, hx, params, *options = arguments
    hidden = f"({hx[1:-1]})" if name == "lstm" else hx[1:-1]
    return f"torch.{name}({', '.join([x, hidden, params, *options])})"
