"""What a task computes, where it is one of the operations that have a template: read off its reference and its launch, on tensors without memory.

The reference is recorded as torch operators, on fake tensors. What only moves elements (views, transpositions, copies) is followed, so that
`x.reshape(...).transpose(...)` is known as an order of x's elements. The launch is called with kernels that note their arguments: which of them are
inputs, which is the output, and which numbers go with them. A task that is none of these operations, or that cannot be recorded, has no operation.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node
from torch.utils._python_dispatch import TorchDispatchMode

MOST_MOVED = 1 << 24
"""Elements whose order is followed: it takes 8 bytes each."""


@dataclass(frozen=True)
class Operation:
    """An operation on a task's inputs."""

    template: str
    """Name of the template (templates/device)."""
    inputs: tuple[int, ...]
    """Which of the task's inputs it takes, in the template's order."""
    sizes: tuple[tuple[str, float], ...]
    """What the template has to know besides."""
    element: str = "float"
    """Of inputs and output."""


@dataclass(frozen=True)
class Call:
    """How a launch calls its entry, once."""

    entry: str
    arguments: tuple[tuple[str, float], ...]
    """For each parameter: ("input", which), ("output", which), ("copy", which input) for an output that begins as a copy, ("scratch", 0) or
    ("number", value)."""


def of_task(python: str, name: str) -> tuple[Operation, Call] | None:
    """Return the operation that a task file's reference is, and its call; None where it is none that is known."""
    graph, call = recorded(python, name)
    if graph is None or call is None:
        return None
    operation = next((matched for match in MATCHERS if (matched := _matched(match, graph)) is not None), None)
    return None if operation is None else (operation, call)


@functools.lru_cache(maxsize=64)
def recorded(python: str, name: str) -> tuple[Any, Call | None]:
    """Return a task file's reference as a graph and the call of its launch, on tensors without memory; None for what cannot be recorded."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    module = types.ModuleType(name)
    graph = call = None
    with contextlib.suppress(Exception), FakeTensorMode():  # the user's code may do anything there: then it is not known, and that is all
        exec(compile("import torch\n" + python, f"{name}_task.py", "exec"), module.__dict__)
        inputs = module.get_inputs()
        if inputs and all(isinstance(x, torch.Tensor) for x in inputs):
            call = _called(module.launch, inputs)
            graph = make_fx(module.reference)(*inputs)
    return graph, call


def _matched(match: Callable[[Recorded], Operation | None], graph: Any) -> Operation | None:
    try:
        return match(Recorded(graph))
    except _Other:
        return None


class _Other(Exception):
    """Another program than the one that is looked for."""


def _called(launch: Callable[..., Any], inputs: Sequence[torch.Tensor]) -> Call | None:
    """Return the one call that a launch makes; None where it makes another number, or does more with the outputs than return them."""
    calls: list[tuple[str, tuple[Any, ...]]] = []

    class Noting:
        def __getattr__(self, entry: str) -> Callable[..., None]:
            return lambda *values: calls.append((entry, values))

    with _Clones() as clones:
        outputs = launch(Noting(), *inputs)
    outputs = list(outputs) if isinstance(outputs, tuple | list) else [outputs]
    if len(calls) != 1:
        return None
    [(entry, values)] = calls
    arguments: list[tuple[str, float]] = []
    for value in values:
        if not isinstance(value, torch.Tensor):
            arguments.append(("number", value))
        elif any(value is x for x in inputs):
            arguments.append(("input", next(at for at, x in enumerate(inputs) if x is value)))
        elif any(value is y for y in outputs) and any(clones.source(value) is x for x in inputs):
            arguments.append(("copy", next(at for at, x in enumerate(inputs) if clones.source(value) is x)))
        elif any(value is y for y in outputs):
            arguments.append(("output", next(at for at, y in enumerate(outputs) if y is value)))
        else:
            arguments.append(("scratch", 0))
    written = [value for kind, value in arguments if kind in ("output", "copy")]
    return Call(entry, tuple(arguments)) if len(written) == len(outputs) == 1 else None


class _Clones(TorchDispatchMode):
    """Notes which tensors are copies of which."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[Any, Any]] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if str(function) == "aten.clone.default":
            self.pairs.append((result, args[0]))
        return result

    def source(self, copy: Any) -> Any:
        """Return what a tensor is a copy of."""
        return next((source for result, source in self.pairs if result is copy), None)


class Recorded:
    """A recorded reference, from its one output backwards."""

    def __init__(self, graph: Any) -> None:
        self.nodes: list[Node] = list(graph.graph.nodes)
        self.inputs = [node for node in self.nodes if node.op == "placeholder"]
        outputs: Any = self.nodes[-1].args[0]
        if isinstance(outputs, tuple | list):
            if len(outputs) != 1:
                raise _Other
            outputs = outputs[0]
        self.output: Any = outputs

    def number(self, node: Any) -> int:
        """Return which input a node is, unchanged."""
        root, order = self.order(node)
        if root not in self.inputs or order is not None:
            raise _Other
        return self.inputs.index(root)

    def strides(self, node: Any, dims: int) -> tuple[int, tuple[int, ...]]:
        """Return which input a node's elements are of, and by how many of its elements each axis moves; the first is its first."""
        root, copied = node, False
        while getattr(root, "op", "") == "call_function" and _name(root) in MOVES:
            copied |= _name(root) in COPIES
            root = root.args[0]
        if root not in self.inputs or node.meta["val"].dim() != dims:
            raise _Other
        value = node.meta["val"]
        if not copied and root.meta["val"].is_contiguous() and value.storage_offset() == 0:  # a view: torch knows
            return self.inputs.index(root), tuple(step if size > 1 else 0 for size, step in zip(value.shape, value.stride(), strict=True))
        root, order = self.order(node)
        return self.inputs.index(root), _affine(order if order is not None else _counted(root.meta["val"].shape))

    def order(self, node: Any) -> tuple[Any, torch.Tensor | None]:
        """Return the node whose elements a node has in another order, and that order: for each, its place there; None for the node itself."""
        moves = []
        while getattr(node, "op", "") == "call_function" and _name(node) in MOVES:
            moves.append(node)
            node = node.args[0]
        if not moves:
            return node, None
        shape = node.meta["val"].shape
        if any(one.meta["val"].numel() > MOST_MOVED for one in (node, *moves)):
            raise _Other
        order = _counted(shape)
        for one in moves[::-1]:
            order = one.target(order, *one.args[1:], **{k: v for k, v in one.kwargs.items() if k == "memory_format"})
        same = order.shape == shape and bool((order.flatten() == _counted(shape).flatten()).all())
        return node, None if same else order

    def call(self, node: Any, *names: str) -> Any:
        """Return a node that is a call of one of some operators; raise _Other for another."""
        if getattr(node, "op", "") != "call_function" or _name(node) not in names:
            raise _Other
        return node


_MOVES = """
view.default _unsafe_view.default reshape.default permute.default transpose.int t.default expand.default unsqueeze.default squeeze.dim squeeze.dims
squeeze.default clone.default select.int slice.Tensor alias.default detach.default
"""
MOVES = frozenset(f"aten.{name}" for name in _MOVES.split())
"""Operators that give the elements of their first argument, in another order or shape."""


COPIES = frozenset({"aten.clone.default", "aten._unsafe_view.default", "aten.reshape.default"})
"""Those of them whose result may lie elsewhere in memory."""


def _name(node: Any) -> str:
    return str(getattr(node, "target", ""))


def _counted(shape: Sequence[int]) -> torch.Tensor:
    count = 1
    for size in shape:
        count *= int(size)
    return torch.arange(count).reshape(tuple(int(size) for size in shape))


def _affine(order: torch.Tensor) -> tuple[int, ...]:
    """Return by how much each axis moves, where the places are sums of multiples of the indices."""
    steps = []
    whole = torch.zeros((), dtype=torch.int64)
    for axis, size in enumerate(order.shape):
        first = order[tuple(slice(None) if other == axis else 0 for other in range(order.dim()))]
        step = int(first[1] - first[0]) if size > 1 else 0
        steps.append(step)
        whole = whole.unsqueeze(-1) + torch.arange(size) * step
    if int(order.flatten()[0]) != 0 or not bool((whole == order).all()):
        raise _Other
    return tuple(steps)


# --- the operations -----------------------------------------------------------------------------------------------------------------


ELEMENTS = {"torch.float32": "float", "torch.int32": "int"}


def _element(recorded: Recorded, which: int, legal: Sequence[str] = ("float",)) -> str:
    """Return the C type of an input's elements, which have to be those of the output, too; raise _Other where it is not legal."""
    kinds = {str(node.meta["val"].dtype) for node in (recorded.inputs[which], recorded.output)}
    element = ELEMENTS.get(kinds.pop(), "") if len(kinds) == 1 else ""
    if element not in legal:
        raise _Other
    return element


def _vector(recorded: Recorded, node: Any, legal: Sequence[str] = ("float",)) -> tuple[int, int]:
    """Return which input a node is, a vector, and its length."""
    which = recorded.number(node)
    value = recorded.inputs[which].meta["val"]
    if value.dim() != 1:
        raise _Other
    _element(recorded, which, legal)
    return which, int(value.numel())


def _argument(node: Any, at: int, name: str, default: Any) -> Any:
    return node.args[at] if len(node.args) > at else node.kwargs.get(name, default)


def _first(recorded: Recorded, node: Any) -> Any:
    """Return what a node is the first result of."""
    if getattr(node, "op", "") != "call_function" or _name(node) != "<built-in function getitem>" or node.args[1] != 0:
        raise _Other
    return node.args[0]


def prefix_sum(recorded: Recorded) -> Operation | None:
    """`x.cumsum(0)`."""
    node = recorded.call(recorded.output, "aten.cumsum.default")
    which, n = _vector(recorded, node.args[0])
    return Operation("prefix_sum", (which,), (("n", n),))


def radix_sort(recorded: Recorded) -> Operation | None:
    """`x.sort().values`."""
    node = recorded.call(_first(recorded, recorded.output), "aten.sort.default", "aten.sort.stable")
    if _argument(node, 2, "descending", False):
        raise _Other
    which, n = _vector(recorded, node.args[0], ("float", "int"))
    element = _element(recorded, which, ("float", "int"))
    return Operation("radix_sort", (which,), (("n", n),), element) if n < 1 << 30 else None


def top_k(recorded: Recorded) -> Operation | None:
    """`x.topk(k).values`."""
    node = recorded.call(_first(recorded, recorded.output), "aten.topk.default")
    if not _argument(node, 3, "largest", True) or not _argument(node, 4, "sorted", True):
        raise _Other
    which, n = _vector(recorded, node.args[0])
    k = int(node.args[1])
    return Operation("top_k", (which,), (("n", n), ("k", k))) if 1 <= k <= 1024 else None


def _matrix(recorded: Recorded, node: Any) -> tuple[int, int, int]:
    """Return which input a node is, a float32 matrix, and its sides."""
    which = recorded.number(node)
    value = recorded.inputs[which].meta["val"]
    if value.dim() != 2:
        raise _Other
    _element(recorded, which)
    return which, int(value.shape[0]), int(value.shape[1])


def product(recorded: Recorded) -> Operation | None:
    """`a @ b`."""
    node = recorded.call(recorded.output, "aten.mm.default")
    a, m, k = _matrix(recorded, node.args[0])
    b, _, n = _matrix(recorded, node.args[1])
    return Operation("product", (a, b), (("m", m), ("n", n), ("k", k))) if k > 0 else None


def normal_equations(recorded: Recorded) -> Operation | None:
    """`solve(x^T x, x^T y)`."""
    solve = recorded.call(_first(recorded, recorded.output), "aten._linalg_solve_ex.default")
    square = recorded.call(solve.args[0], "aten.mm.default")
    left, strides = recorded.strides(square.args[0], 2)
    x, n, m = _matrix(recorded, square.args[1])
    root, order = recorded.order(solve.args[1])
    right = recorded.call(root, "aten.mv.default", "aten.mm.default")
    other, same = recorded.strides(right.args[0], 2)
    y, _ = recorded.order(right.args[1])
    by_columns = (1 if m > 1 else 0, m if n > 1 else 0)
    if left != x or other != x or strides != by_columns or same != by_columns or y not in recorded.inputs or (order is not None and order.dim() != 1):
        raise _Other
    if solve.meta["val"][0].numel() != m or y.meta["val"].numel() != n or not 1 <= m <= 64 or n >= 1 << 25:
        raise _Other
    return Operation("normal_equations", (x, recorded.inputs.index(y)), (("n", n), ("m", m)))


def window_product(recorded: Recorded) -> Operation | None:
    """`conv2d(image[None, None], filter[None, None])[0, 0]`, of one plane, without padding."""
    root, order = recorded.order(recorded.output)
    node = recorded.call(root, "aten.convolution.default")
    plain = [list(one) if isinstance(one, list | tuple) else one for one in node.args[2:9]]
    if plain != [None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1] or (order is not None and not _in_place(order)):
        raise _Other
    planes = []
    for one in node.args[:2]:
        which, steps = recorded.strides(one, 4)
        height, width = (int(size) for size in one.meta["val"].shape[2:])
        if tuple(one.meta["val"].shape[:2]) != (1, 1) or steps[2:] != (width if height > 1 else 0, 1 if width > 1 else 0):
            raise _Other
        _element(recorded, which)
        planes.append((which, height, width))
    [(image, height, width), (weights, rows, columns)] = planes
    if not (1 <= rows <= 15 and 1 <= columns <= 15 and rows * columns > 1):
        raise _Other
    return Operation("window_product", (image, weights), (("height", height), ("width", width), ("rows", rows), ("columns", columns)))


def _in_place(order: torch.Tensor) -> bool:
    """Is an order that of memory?"""
    return bool((order.flatten() == torch.arange(order.numel())).all())


def attention(recorded: Recorded) -> Operation | None:
    """`softmax(q k^T * scale) v` for every head, however the heads lie."""
    root, order = recorded.order(recorded.output)
    second = recorded.call(root, "aten.bmm.default")
    heads, rows, depth = (int(size) for size in second.meta["val"].shape)
    out = order.flatten() if order is not None else _counted(second.meta["val"].shape).flatten()
    places = torch.empty_like(out)
    places[out] = torch.arange(out.numel())  # of each element of the product: its place in the output
    by_output = _affine(places.reshape(heads, rows, depth))
    weights, moved = recorded.order(second.args[0])
    if moved is not None and moved.flatten().tolist() != list(range(moved.numel())):
        raise _Other
    weights = recorded.call(weights, "aten._softmax.default")
    if weights.args[1] not in (-1, len(weights.meta["val"].shape) - 1):
        raise _Other
    node, scale = weights.args[0], 1.0
    for _ in range(8):
        name = _name(node)
        if name in ("aten.mul.Tensor", "aten.div.Tensor") and isinstance(node.args[1], int | float):
            scale = scale * node.args[1] if name == "aten.mul.Tensor" else scale / node.args[1]
            node = node.args[0]
        elif name in MOVES:
            inner, moved = recorded.order(node)
            if moved is not None and not bool((moved.flatten() == torch.arange(moved.numel())).all()):
                raise _Other
            node = inner
        else:
            break
    first = recorded.call(node, "aten.bmm.default")
    q, by_q = recorded.strides(first.args[0], 3)
    k, by_k = recorded.strides(first.args[1], 3)  # [heads, depth, keys]
    v, by_v = recorded.strides(second.args[1], 3)
    keys = int(first.meta["val"].shape[2])
    inside = int(first.args[0].meta["val"].shape[2])
    for which in (q, k, v):
        _element(recorded, which)
    unit = [by_q[2], by_k[1], by_v[2], by_output[2]]
    if inside != depth or not 1 <= depth <= 128 or (depth > 1 and unit != [1, 1, 1, 1]):
        raise _Other
    sizes: Mapping[str, float] = {
        "heads": heads, "rows": rows, "keys": keys, "depth": depth, "q_head": by_q[0], "q_row": by_q[1], "k_head": by_k[0], "k_row": by_k[2],
        "v_head": by_v[0], "v_row": by_v[1], "o_head": by_output[0], "o_row": by_output[1], "scale": scale,
    }  # fmt: skip
    return Operation("attention", (q, k, v), tuple(sizes.items()))


MATCHERS: tuple[Callable[[Recorded], Operation | None], ...] = (
    prefix_sum, radix_sort, top_k, product, normal_equations, window_product, attention,
)  # fmt: skip
