"""A fused kernel as a callable that stands in the graph: run, it interprets the calls it replaced; lowered, it is C++."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright.domains.graph.cpp.calls import BUILDERS, GPU_ONLY, MOVES, PARTS
from warpwright.domains.graph.cpp.calls.bags import BAGS
from warpwright.domains.graph.cpp.generate import function
from warpwright.domains.graph.cpp.program import Axes, Program, Unsupported
from warpwright.domains.graph.cpp.resampling import RESAMPLED
from warpwright.domains.graph.cpp.sums import SUMS, base_of, fill, source_of
from warpwright.domains.graph.ir import argument, aten, dtype, is_op, is_tensor, shape, type_text, value
from warpwright.domains.graph.text.calls import expression


def build(nodes: Sequence[fx.Node], results: Sequence[fx.Node]) -> Program:
    """Return the program of some calls, given in graph order; Unsupported when they cannot be one kernel."""
    whole = max((sizes for node in nodes for sizes in _spaces(node)), key=lambda sizes: (math.prod(sizes), len(sizes)))
    groups = next((_groups(node) for node in nodes if is_op(node, aten.group_norm, aten.instance_norm)), None)
    sizes: list[int] = []
    dims: list[tuple[int, ...]] = []
    for d, size in enumerate(whole):
        parts = [groups, size // groups] if d == 1 and groups and size % groups == 0 else [size]
        dims.append(tuple(range(len(sizes), len(sizes) + len(parts))) if size != 1 or len(parts) == 2 else ())
        sizes += parts if dims[-1] else []
    program = Program(sizes, tuple(dims), later=_parts(nodes, results), members=frozenset(nodes))
    for node in nodes:
        if node in program.later:
            continue
        program.env[node] = BUILDERS[node.target](program, node)
        if node in program.sums:
            if node not in results or any(user in program.members for user in node.users):
                raise Unsupported("a sum at indices that is read where it is formed")
            continue
        if tuple(program.size(dim) for dim in program.env[node].axes) != shape(node):
            raise Unsupported(f"{node.name} does not fit the iteration space")
    reduced = program.reduced or frozenset()
    every = frozenset(range(len(sizes)))
    for node in results:
        result = program.env[node]
        if result.over != every and result.over != every - reduced:
            raise Unsupported("a result that is smaller than the rows")
        if result.kind != "op":
            result = program.op("{0}", result, type=result.type)
        program.outputs.append((node, result))
    return program


def _parts(nodes: Sequence[fx.Node], results: Sequence[fx.Node]) -> frozenset[fx.Node]:
    """Return the calls that are read as parts of larger tensors alone."""
    parts: set[fx.Node] = set()
    for node in reversed(nodes):
        if node not in results and node.users and all(user in parts or user.target in PARTS for user in node.users):
            parts.add(node)
    return frozenset(parts)


def copy_of(node: fx.Node) -> Program:
    """Return the program of a call that copies its first argument."""
    long = [d for d, size in enumerate(shape(node)) if size != 1]
    program = Program([shape(node)[d] for d in long], tuple((long.index(d),) if d in long else () for d in range(len(shape(node)))))
    source: Any = node.args[0]
    program.outputs.append((node, program.op("{0}", program.load(source, program.dims))))
    return program


def _spaces(node: fx.Node) -> list[tuple[int, ...]]:
    if node.target in SUMS:
        return [shape(source_of(node))]
    sources = [] if node.target in (*MOVES, *RESAMPLED, *BAGS) else node.all_input_nodes[:1]  # what is chosen from may be larger than what is chosen
    return [shape(n) for n in (node, *sources) if is_tensor(n)]


def _groups(node: fx.Node) -> int:
    return int(argument(node, "num_groups")) if is_op(node, aten.group_norm) else shape(node)[1]


class Fused:
    """Calls in one kernel, whatever it is written in. `inputs` are the placeholders of `calls`, a graph of the calls that it replaces."""

    def __init__(self, name: str, program: Program, nodes: Sequence[fx.Node]) -> None:
        self.__name__ = name
        self.program = program
        fills = list(filter(None, map(fill, program.sums)))
        sums = {i: node for i, (node, _) in enumerate(program.outputs) if node in program.sums}
        self.bases: dict[int, fx.Node] = {i: base for i, node in sums.items() if (base := base_of(node)) not in fills}
        self.sources = tuple(dict.fromkeys([*(node for node, _ in program.operands), *self.bases.values()]))
        self.calls = subgraph([*dict.fromkeys(fills), *nodes], self.sources, [node for node, _ in program.outputs])
        self.operands = tuple(self.sources.index(node) for node, _ in program.operands)
        self.outputs = tuple((shape(node), value(node).dtype) for node, _ in program.outputs)

    text: str
    """The source."""
    floats: ClassVar[tuple[torch.dtype, ...]] = (torch.float32,)
    """Floating-point types that it may read and write."""
    refused: ClassVar[frozenset[Any]] = frozenset()
    """Calls that it does not take in."""
    laid: Mapping[int, tuple[int, ...]] = MappingProxyType({})
    """Result -> its strides, where it is not contiguous."""

    def __repr__(self) -> str:
        return self.__name__

    def __call__(self, *inputs: torch.Tensor) -> Any:
        """Return what the calls compute, as tensors of their own that lie as the kernel's results."""
        if inputs and inputs[0].is_meta:
            outputs = [torch.empty(sizes, dtype=kind, device="meta") for sizes, kind in self.outputs]
        else:
            outputs = [t.contiguous() for t in interpret(self.calls, inputs)]
        for i, steps in self.laid.items():
            outputs[i] = torch.empty_strided(outputs[i].shape, steps, dtype=outputs[i].dtype, device=outputs[i].device).copy_(outputs[i])
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @property
    def names(self) -> list[str]:
        """The parameters of the generated function."""
        return [f"a{i}" for i in range(len(self.sources))]

    @property
    def summary(self) -> str:
        """The names of the calls that it replaces."""
        called = [node.target for node in self.calls.nodes if node.op == "call_function" and node.target is not operator.getitem]
        return ", ".join(str(getattr(target, "overloadpacket", target)).split(".")[-1] for target in called)

    def opening(self, unavailable: str) -> list[str]:
        """Return the function's first lines, with the same calls in torch where there is no kernel (`unavailable`, in Python)."""
        lines = [f"def {self.__name__}({', '.join(self.names)}):", f'    """{self.summary}: one pass over memory."""', f"    if {unavailable}:"]
        return [*lines, *(f"        {line}" for line in _fallback(self.calls, self.laid))]

    def python_text(self) -> str:
        """Return the Python function that calls the kernel."""
        raise NotImplementedError


class Kernel(Fused):
    """A generated C++ kernel."""

    refused = GPU_ONLY

    def __init__(self, name: str, program: Program, nodes: Sequence[fx.Node]) -> None:
        super().__init__(name, program, nodes)
        self.text = function(program, name)

    def python_text(self) -> str:
        """Return the Python function that allocates the results and calls the kernel."""
        lines = self.opening("KERNELS is None")
        lines += [f"    {name} = {name}.contiguous()" for name in self.names]
        lines += [f"    o{i} = torch.empty({tuple(sizes)}, dtype={kind})" for i, (sizes, kind) in enumerate(self.outputs)]
        outputs = [f"o{i}" for i in range(len(self.outputs))]
        pointers = [f"{text}.data_ptr()" for text in [*(f"a{i}" for i in self.operands), *outputs]]
        lines += [f"    KERNELS.{self.__name__}({', '.join([*pointers, 'torch.get_num_threads()'])})"]
        return "\n".join([*lines, f"    return {outputs[0] if len(outputs) == 1 else '(' + ', '.join(outputs) + ')'}"])

    @property
    def pointers(self) -> int:
        """How many pointers the C++ function takes."""
        return len(self.operands) + len(self.outputs)


def subgraph(nodes: Sequence[fx.Node], sources: Sequence[fx.Node], results: Sequence[fx.Node]) -> fx.Graph:
    """Return the calls as a graph of their own, whose placeholders are `sources`; expansions of what it holds are made in it."""
    graph = fx.Graph()
    twin: dict[fx.Node, Any] = {}
    for i, node in enumerate(sources):
        twin[node] = graph.create_node("placeholder", f"a{i}", name=f"a{i}")
        twin[node].meta = dict(node.meta)

    def known(node: fx.Node) -> Any:
        if node not in twin and is_op(node, aten.expand.default, aten.expand_as.default):
            source: Any = node.args[0]
            twin[node] = graph.create_node("call_function", aten.expand.default, (known(source), list(shape(node))), name="expand")
            twin[node].meta = dict(node.meta)
        return twin[node] if node in twin else node.meta["number"]

    for node in nodes:
        args, kwargs = fx.map_arg((node.args, node.kwargs), known)
        twin[node] = graph.create_node(node.op, node.target, args, kwargs, name=getattr(node.target, "overloadpacket", node.target).__name__)  # type: ignore[union-attr]
        twin[node].meta = dict(node.meta)
    graph.output(tuple(twin[node] for node in results))
    return graph


def interpret(graph: fx.Graph, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    env: dict[fx.Node, Any] = {}
    operands = iter(inputs)
    for node in graph.nodes:
        if node.op == "placeholder":
            env[node] = next(operands)
        elif node.op == "call_function":
            args, kwargs = fx.map_arg((node.args, node.kwargs), env.__getitem__)
            env[node] = node.target(*args, **kwargs)
    results: Any = graph.output_node().args[0]
    return [env[node] for node in results]


def _fallback(graph: fx.Graph, laid: Mapping[int, tuple[int, ...]]) -> list[str]:
    """Return the same calls as torch code, its results with the strides `laid`."""
    names = {node: node.name for node in graph.nodes}
    lines = []
    for node in graph.nodes:
        if node.op == "call_function":
            lines.append(f"{names[node]} = {expression(node, names.__getitem__, 'a0.device')}  # {type_text(node)}")
    results: Any = graph.output_node().args[0]
    shown = [
        f"torch.empty_strided({shape(node)}, {laid[i]}, dtype={dtype(node)}, device=a0.device).copy_({names[node]})" if i in laid
        else f"{names[node]}.contiguous()" for i, node in enumerate(results)
    ]  # fmt: skip
    return [*lines, f"return {shown[0] if len(shown) == 1 else '(' + ', '.join(shown) + ')'}"]


@functools.cache
def head() -> str:
    """Return the text that every generated source begins with."""
    return Path(__file__).with_name("vector_math.cpp").read_text()


__all__ = ["Axes", "Kernel", "Unsupported", "build", "head"]
