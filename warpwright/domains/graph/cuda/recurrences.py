"""A loop over time, element by element, as one CUDA kernel in place of some calls for each step.

    for t in range(T):  h = a[:, t] * h + b[:, t]  ...  stack(hs, 1)        first-order linear recurrences, moving averages, gated ones

The program is captured step by step; here the steps are found to be the same expression of h and of what stands at t in some tensors. A thread has
one line (an element of h) and walks along time, neighbouring threads along neighbouring lines; what it reads of the next WALKED steps does not wait
for h. Steps are done in the original's order, with its roundings: additions and multiplications have torch's own bits.

On an H200 a gated recurrence of 64 steps and 2^15 lines takes 25 us, a moving average 42, 5.5 and 4.8 times as fast as the best of torch.compile and
a CUDA graph (benchmarks/results/modules_h200): 1.0 TB/s of the first's 25 MB, which L2 holds. A line a thread fills a GPU from some 2^15 lines on;
few long lines would want a scan in parts, which rounds differently.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.calls import ELEMENTWISE
from warpwright.domains.graph.cpp.kernel import build
from warpwright.domains.graph.cpp.program import Program, Unsupported
from warpwright.domains.graph.cuda.elements import KINDS
from warpwright.domains.graph.cuda.generate import Generated, Launch
from warpwright.domains.graph.cuda.plan import TYPES
from warpwright.domains.graph.ir import argument, aten, is_op, is_tensor, shape, value

ROOTS = (aten.stack.default, aten.select_scatter.default)
"""Calls that a loop may end with: stack(hs, dim), or out[:, t] = h."""
LEAST_STEPS = 4
MOST_CALLS = 64
"""Of a step: more are the history of another loop, on which this one depends."""
BLOCK, WALKED = 256, 8
"""Threads of a block; steps that are read at once."""
_EMPTY = (
    aten.empty_like.default, aten.zeros_like.default, aten.new_empty.default, aten.new_zeros.default, aten.empty.memory_format, aten.zeros.default,
)  # fmt: skip
_KINDS = (torch.float32, torch.bool)


@dataclass(frozen=True)
class Recurrence:
    """`steps` steps of `rows` times `inner` lines; tensors of steps are read as [rows, steps, inner], those that lie otherwise from a copy."""

    root: fx.Node
    states: tuple[fx.Node, ...]
    """h after each step; the first is `initial` itself where `begin` is 1."""
    program: Program
    """One step."""
    tensors: tuple[fx.Node, ...]
    """Each is read at t."""
    initial: fx.Node
    begin: int
    constants: tuple[fx.Node, ...]
    """Tensors that are the same in all steps, over the last dimensions of h."""
    places: dict[fx.Node, tuple[str, int]]
    """Operand of the step -> h; or x, c and its number."""
    calls: tuple[fx.Node, ...]
    """What it replaces, in graph order."""
    rows: int
    inner: int

    @property
    def sources(self) -> tuple[fx.Node, ...]:
        """The operands of the kernel."""
        return (*self.tensors, self.initial, *self.constants)


def read(node: Any) -> Recurrence | None:
    """Return the loop that ends with a call; None where there is none that can be written here."""
    if not isinstance(node, fx.Node) or not is_op(node, *ROOTS) or not is_tensor(node) or value(node).dtype != torch.float32:
        return None
    states, dim, base = _states(node)
    if len(states) < LEAST_STEPS or len(states) != shape(node)[dim] or len(set(states)) != len(states) or not value(node).is_contiguous():
        return None
    steps = _Steps(states, dim, shape(node))
    second = steps.form(states[1], states[0])
    if second is None or any(steps.form(one, before) != second for before, one in itertools.pairwise(states[1:])):
        return None
    initial, begin = states[0], 1
    for leaf in steps.leaves(states[0]):
        if shape(leaf) == steps.line and value(leaf).dtype == torch.float32 and steps.form(states[0], leaf) == second:
            initial, begin = leaf, 0
            break
    return steps.checked(node, initial, begin, base)


def time_of(node: fx.Node) -> int:
    """Return the dimension of time in the result of a loop."""
    return int(argument(node, "dim")) % len(shape(node))


def is_long(node: fx.Node) -> bool:
    """May a call be the end of a loop?"""
    return is_tensor(node) and shape(node)[time_of(node)] >= LEAST_STEPS


def _states(node: fx.Node) -> tuple[list[fx.Node], int, fx.Node | None]:
    """Return h after each step, the dimension of time, and the tensor into which they are written, if there is one."""
    rank, dim = len(shape(node)), time_of(node)
    if is_op(node, aten.stack.default):
        parts: Any = node.args[0]
        return list(parts), dim, None
    states: list[fx.Node] = []
    at, base = shape(node)[dim] - 1, node
    while at >= 0 and is_op(base, aten.select_scatter.default) and argument(base, "dim") % rank == dim and argument(base, "index") == at:
        written: Any = base.args[1]
        state: Any = written.args[1] if is_op(written, aten.copy.default) else written
        if not is_tensor(state) or shape(state) != shape(written) or value(state).dtype != torch.float32:
            return [], dim, None
        states.append(state)
        at, base = at - 1, base.args[0]  # type: ignore[assignment]
    return (states[::-1], dim, base) if at < 0 and is_op(base, *_EMPTY) else ([], dim, None)


class _Steps:
    """The steps of a loop: what each is as an expression of h before it and of tensors at its time."""

    def __init__(self, states: Sequence[fx.Node], dim: int, sizes: tuple[int, ...]) -> None:
        self.states, self.dim, self.sizes = states, dim, sizes
        self.line = (*sizes[:dim], *sizes[dim + 1 :])
        self.number = {state: t for t, state in enumerate(states)}
        self.shared: frozenset[fx.Node] = frozenset()
        """What is computed before the loop, for all steps."""
        self.shared = frozenset(self.cone(states[1], states[0])[0]) & frozenset(self.cone(states[2], states[1])[0])

    def fits(self, sizes: tuple[int, ...]) -> bool:
        """Are these the last dimensions of h?"""
        return bool(sizes) and sizes == self.line[-len(sizes) :]

    def at(self, node: Any) -> tuple[fx.Node, int] | None:
        """Return the tensor, and the time, of which a node is what stands there."""
        if is_op(node, aten.select.int):
            source, dim, index = node.args[0], argument(node, "dim"), argument(node, "index")
        elif isinstance(node, fx.Node) and node.target is operator.getitem and is_op(node.args[0], aten.unbind.int):
            listed: Any = node.args[0]
            source, dim, index = listed.args[0], argument(listed, "dim"), node.args[1]
        else:
            return None
        if not is_tensor(source) or shape(source) != self.sizes or dim % len(self.sizes) != self.dim:
            return None
        return (source, index % self.sizes[self.dim]) if value(source).dtype in _KINDS else None

    def inside(self, node: Any) -> bool:
        """Is this a call of a step, rather than what it reads?"""
        if not isinstance(node, fx.Node) or node.target not in ELEMENTWISE or not is_tensor(node) or node in self.shared:
            return False
        return shape(node) == self.line and value(node).dtype in _KINDS

    def form(self, state: fx.Node, before: fx.Node) -> Any:
        """Return a step as nested tuples, alike for two steps that do the same; None for what is no step after `before`."""
        time, known, met = self.number[state], dict[fx.Node, Any](), [False]
        calls = itertools.count()

        def of(arg: Any) -> Any:
            if isinstance(arg, list | tuple):
                return tuple(map(of, arg))
            if not isinstance(arg, fx.Node):
                return (type(arg).__name__, repr(arg))
            if arg is before:
                met[0] = True
                return "h"
            if arg not in known:
                place = self.at(arg)
                if place is not None:
                    known[arg] = ("x", place[0].name, place[1] - time)
                elif self.inside(arg) and (arg is state or arg not in self.number) and next(calls) < MOST_CALLS:
                    known[arg] = (str(arg.target), of(arg.args), tuple((key, of(arg.kwargs[key])) for key in sorted(arg.kwargs)))
                else:
                    known[arg] = ("c", arg.name)
            return known[arg]

        made = of(state) if self.inside(state) else None
        return made if met[0] and next(calls) <= MOST_CALLS else None

    def cone(self, state: fx.Node, before: fx.Node | None) -> tuple[list[fx.Node], list[fx.Node]]:
        """Return the calls of a step in graph order, and what they read."""
        calls, leaves, todo = set[fx.Node](), dict[fx.Node, None](), [state]
        while todo:
            node = todo.pop()
            if node in calls or node in leaves:
                continue
            if (node is state or node not in self.number) and self.at(node) is None and self.inside(node):
                calls.add(node)
                todo += node.all_input_nodes
            else:
                leaves[node] = None
        return sorted(calls), list(leaves)

    def leaves(self, state: fx.Node) -> list[fx.Node]:
        """Return the tensors in the place of h that the first step may begin with: those that it reads, and its own calls."""
        calls, leaves = self.cone(state, None)
        return [node for node in (*leaves, *calls) if is_tensor(node) and node is not state]

    def checked(self, root: fx.Node, initial: fx.Node, begin: int, base: fx.Node | None) -> Recurrence | None:
        """Return the loop, if its step can be written and nobody reads what is within."""
        calls, _ = self.cone(self.states[1], self.states[0])
        try:
            program = build(calls, [self.states[1]])
        except Unsupported:
            return None
        tensors: list[fx.Node] = []
        constants: list[fx.Node] = []
        places: dict[fx.Node, tuple[str, int]] = {}
        for leaf in (node for node, _ in program.operands):
            place = self.at(leaf)
            if leaf is self.states[0]:
                places[leaf] = ("h", 0)
            elif place is not None:
                if place[1] != 1:  # of another time
                    return None
                tensors += [place[0]] if place[0] not in tensors else []
                places[leaf] = ("x", tensors.index(place[0]))
            else:
                sizes = shape(leaf)
                if value(leaf).dtype not in _KINDS or not self.fits(sizes):
                    return None
                constants.append(leaf)
                places[leaf] = ("c", len(constants) - 1)
        if program.reduced or program.moves or not tensors or value(initial).dtype != torch.float32:
            return None
        sources = {*tensors, initial, *constants}
        every = _between(root, sources)
        if every is None:
            return None
        inner_calls = [node for node in every if node not in self.states and node is not root and self.at(node) is None and not _is_view(node)]
        replaced = {*every}
        if any(user not in replaced for node in inner_calls for user in node.users):
            return None  # it would be computed twice
        if base is not None and any(node not in sources for node in base.all_input_nodes):
            return None
        rows, inner = math.prod(self.sizes[: self.dim]), math.prod(self.sizes[self.dim + 1 :])
        if not 0 < rows * inner < 2**30:
            return None
        return Recurrence(
            root, tuple(self.states), program, tuple(tensors), initial, begin, tuple(constants), places, tuple(every), rows, inner
        )  # fmt: skip


def _is_view(node: fx.Node) -> bool:
    return is_op(node, aten.unbind.int, aten.select.int) or node.target is operator.getitem


def _between(root: fx.Node, sources: set[fx.Node]) -> list[fx.Node] | None:
    """Return the calls by which a result follows from `sources`, in graph order; None where it follows from others too."""
    found: set[fx.Node] = set()
    todo = [root]
    while todo:
        node = todo.pop()
        if node in found or node in sources:
            continue
        if node.op != "call_function":
            return None
        found.add(node)
        todo += node.all_input_nodes
    return sorted(found)


def generate(loop: Recurrence, name: str) -> Generated:
    """Return the kernel. It takes the tensors of steps, the initial h, the constants, then the result."""
    lines, steps = loop.rows * loop.inner, len(loop.states)
    kinds = [TYPES[value(node).dtype] for node in loop.sources]
    parameters = [f"const {kind}* __restrict__ a{i}" for i, kind in enumerate(kinds)] + ["float* __restrict__ o0"]
    first_constant = len(loop.tensors) + 1
    sizes = [math.prod(shape(node)) for node in loop.constants]
    body = [
        f"const int line = blockIdx.x * {BLOCK} + threadIdx.x;",
        f"if (line >= {lines}) return;",
        f"const long long from = (long long)(line / {loop.inner}) * {steps * loop.inner} + line % {loop.inner};",
        f"float h = a{len(loop.tensors)}[line];",
        *(f"const float c{i} = number(a{first_constant + i}[line % {size}]);" for i, size in enumerate(sizes)),
        *(["o0[from] = h;"] if loop.begin else []),
        f"for (int start = {loop.begin}; start < {steps}; start += {WALKED}) {{",
        *(f"    float x{i}[{WALKED}];" for i in range(len(loop.tensors))),
        "#pragma unroll",
        f"    for (int u = 0; u < {WALKED}; ++u) {{",
        f"        const long long at = from + (long long)(start + u) * {loop.inner};",
        *(f"        x{i}[u] = start + u < {steps} ? number(a{i}[at]) : 0.f;" for i in range(len(loop.tensors))),
        "    }",
        "#pragma unroll",
        f"    for (int u = 0; u < {WALKED}; ++u) {{",
        f"        if (start + u < {steps}) {{",
        *(f"            {line}" for line in _step(loop)),
        f"            o0[from + (long long)(start + u) * {loop.inner}] = h;",
        "        }",
        "    }",
        "}",
    ]
    signature = f'extern "C" __global__ void __launch_bounds__({BLOCK}) {name}({", ".join(parameters)}) {{'
    return Generated("\n".join([signature, *(f"    {line}" for line in body), "}"]) + "\n", Launch(name, -(-lines // BLOCK), BLOCK))


def _step(loop: Recurrence) -> list[str]:
    """Return the lines of one step."""
    lines = []
    for v in loop.program.values:
        if v.kind == "load":
            kind, number = loop.places[loop.program.operands[v.operand][0]]
            lines.append(f"const float v{v.number} = {'h' if kind == 'h' else f'x{number}[u]' if kind == 'x' else f'c{number}'};")
        elif v.kind == "op":
            text = v.text.format(*(f"({a.text})" if a.kind == "const" else f"v{a.number}" for a in v.args))
            lines.append(f"const {KINDS[v.type]} v{v.number} = {text};")
    [(_, result)] = loop.program.outputs
    return [*lines, f"h = v{result.number};"]
