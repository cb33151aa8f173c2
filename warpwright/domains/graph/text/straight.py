"""Straight-line functions of a generated file: a graph's calls as lines of Python, and the kernels that they call."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph import template
from warpwright.domains.graph.capture import results
from warpwright.domains.graph.cpp.kernel import Kernel, head
from warpwright.domains.graph.cuda.kernel import source_of
from warpwright.domains.graph.cuda.launches import Launches, kernels_of
from warpwright.domains.graph.ir import GraphIR, foldable, is_tensor, mutated, placeholders, role, type_text, value, written
from warpwright.domains.graph.text.calls import expression
from warpwright.errors import NotApplicable
from warpwright.native import launch_plan, standalone, standalone_cuda


@dataclass(frozen=True)
class Function:
    """A straight-line function of the generated file."""

    name: str
    parameters: tuple[fx.Node, ...]
    lines: tuple[str, ...]


def split(ir: GraphIR) -> tuple[list[fx.Node], list[fx.Node]]:
    """Return the calls to compute once per state (none without fold_parameters), and the others."""
    calls = [node for node in ir.graph.nodes if node.op == "call_function"]
    if ir.scheduled("fold_parameters") is None:
        return [], calls
    fixed = foldable(ir.graph)
    return [n for n in calls if n in fixed], [n for n in calls if n not in fixed]


def frontier(folded: Sequence[fx.Node]) -> tuple[fx.Node, ...]:
    """Return the folded values that are read by what is not folded."""
    inside = set(folded)
    return tuple(node for node in folded if any(user not in inside for user in node.users))


def reads(nodes: Iterable[fx.Node], results: Iterable[Any]) -> tuple[fx.Node, ...]:
    """Return the placeholders that the calls or the results read, in graph order: inputs, state and tensor literals."""
    placeholders = {arg for node in nodes for arg in node.all_input_nodes if arg.op == "placeholder"}
    placeholders |= {r for r in results if isinstance(r, fx.Node) and r.op == "placeholder"}
    return tuple(sorted(placeholders))


def state(ir: GraphIR, rest: Iterable[fx.Node]) -> tuple[fx.Node, ...]:
    """Return the tensors of the state that the calls `rest` or the results read."""
    return tuple(node for node in reads(rest, ir.results) if role(node) != "input" and node.name in ir.state)


def is_flat(ir: GraphIR) -> bool:
    """Does `optimized` return a flat tuple of tensors, which `nested` nests as the original does?"""
    return any(ir.scheduled(name) for name in ("ahead_of_time", "plan", "cuda_graph"))


def names_of(ir: GraphIR) -> dict[fx.Node, str]:
    """Return the variable of each placeholder: an input's own name, a parameter's path with underscores."""
    taken = {node.name for node in ir.graph.nodes} | {"torch", "F", "self", "optimized", "folded"}
    names: dict[fx.Node, str] = {}
    for node in ir.graph.nodes:
        if node.op == "placeholder":
            text = re.sub(r"\W", "_", ir.state[node.name]) if node.name in ir.state else node.name  # torchvision's RegNets: block1.block1-0.weight
            text = text if text.isidentifier() and not iskeyword(text) else f"state_{text}"  # nn.Sequential: 0.weight
            while node.name in ir.state and text in taken:
                text += "_"
            taken.add(text)
            names[node] = text
    return names


def body(ir: GraphIR, nodes: Sequence[fx.Node], results: Sequence[Any], names: dict[fx.Node, str], final: bool = False) -> list[str]:
    """Return the lines of straight-line code and the line that returns its results; `final`: those of the model, nested as its own."""
    inside = set(nodes)
    holders = [n for n in ir.graph.nodes if role(n) == ("input" if final else "state") and is_tensor(n) and (final or n.users.keys() & inside)]
    free = [n for n in placeholders(ir, "input") if n not in holders[:1]]
    lines = block(ir, nodes, results, names, holders[:1], free)
    return [*lines, f"return {returned(ir, names) if final else tuple_text(names[n] for n in results)}"]


def block(
    ir: GraphIR, nodes: Sequence[fx.Node], results: Sequence[Any], names: dict[fx.Node, str], holder: Sequence[fx.Node], free: Iterable[fx.Node]
) -> list[str]:
    """Return the lines of straight-line code that computes `results`.

    A value takes over the name of an operand that dies there, so memory is freed as early as in the original; `free` are parameters that may die.
    The device is that of `holder`.
    """
    lines, kept = [], {r for r in results if isinstance(r, fx.Node)}
    inside, mortal = set(nodes), {*nodes, *free}
    last = {arg: node for node in nodes for arg in node.all_input_nodes if arg in mortal}
    device = f"{names[holder[0]]}.device" if holder else '"cpu"'
    once = held(ir)
    for node in ir.graph.nodes:
        if node.name in ir.constants and any(user in inside for user in node.users):
            shown = f"_literal({node.name!r}, {device})" if node in once and holder else _literal(ir.constants[node.name], _in_one_piece(ir))
            lines.append(f"{names[node]} = {shown}")
    for node in nodes:
        shown = expression(node, names.__getitem__, device)
        dying = [a for a in node.all_input_nodes if last.get(a) is node and a not in kept and a in mortal]
        if written(node) and not node.users:
            lines.append(shown)
            continue
        names[node] = names[dying[0]] if dying else node.name
        lines.append(f"{names[node]} = {shown}  # {_comment(node)}")
        rest = [names[a] for a in dying[1:] if a in inside]
        lines += [f"del {', '.join(rest)}"] if rest else []
    return lines


def held(ir: GraphIR) -> list[fx.Node]:
    """Return the tensors of the program's text that are made once for a device, not in each call: there a GPU would be waited for, and a CUDA graph
    cannot copy from the host.

    Not single numbers where any device reads them; nor what is written to or may be a result; nor what a compiler takes in.
    """
    if _in_one_piece(ir):
        return []
    kept = mutated(ir.graph)
    returned = {value(result).untyped_storage()._cdata for result in ir.results if isinstance(result, fx.Node) and is_tensor(result)}
    nodes = [node for node in ir.graph.nodes if node.name in ir.constants and not _read_anywhere(node) and node not in kept]
    return [node for node in nodes if value(node).untyped_storage()._cdata not in returned]


READ_ANYWHERE = frozenset({
    "add", "sub", "rsub", "mul", "multiply", "div", "pow", "eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum", "where", "masked_fill", "add_",
    "sub_", "mul_", "div_", "copy_", "fill_",
})  # fmt: skip
"""Operators on a GPU's tensors that take a single number of the CPU's as well; clamp, cat and products do not."""


def _read_anywhere(node: fx.Node) -> bool:
    """Is it a single number that all who read it, and what is worked out of it alone, take from the CPU?"""
    todo, seen = [node], {node}
    while todo:
        number = todo.pop()
        if not is_tensor(number) or value(number).dim():
            return False
        for user in number.users:
            if not isinstance(user.target, torch._ops.OpOverload):
                continue
            reads = user.target._schema.name.split("::")[1] in READ_ANYWHERE and is_tensor(user) and value(user).dim() > 0
            if not reads and user not in seen:
                seen.add(user)
                todo.append(user)
    return True


def _in_one_piece(ir: GraphIR) -> bool:
    """Is the program's body taken in by a compiler, or differentiated?"""
    return ir.training is not None or any(ir.scheduled(name) for name in ("ahead_of_time", "plan", "compile"))


def literals(ir: GraphIR) -> list[str]:
    """Return the lines that make those tensors, and that unpack the large ones."""
    nodes = held(ir)
    unpacking = template.UNPACKED if any(ir.constants[node.name].numel() > SHORT for node in ir.graph.nodes if node.name in ir.constants) else ()
    if not nodes:
        return [*unpacking]
    lines = [f"    {node.name!r}: lambda: {_literal(ir.constants[node.name])}," for node in nodes]
    return [*unpacking, "_LITERALS = {", *lines, "}", "", "", *template.LITERAL]


def _comment(node: fx.Node) -> str:
    val = node.meta["val"]
    return type_text(node) if isinstance(val, torch.Tensor) else f"{len(val)} results" if isinstance(val, tuple | list) else "value"


SHORT, MOST_PACKED, MOST_BYTES = 1024, 1 << 20, 1 << 24
"""Elements of a tensor that the text shows; characters of one that it holds packed, as of an identity or a table of positions made by numpy; bytes
of one that packing is tried for, each of which costs eight of memory."""


def _literal(tensor: torch.Tensor, in_one_piece: bool = False) -> str:
    """Return a tensor as text; a large one is unpacked, which no compiler takes in."""
    if tensor.numel() > SHORT:
        packed = "" if in_one_piece or tensor.is_complex() or tensor.numel() * tensor.element_size() > MOST_BYTES else _packed(tensor)
        if not 0 < len(packed) <= MOST_PACKED:
            raise NotApplicable(f"expected a tensor literal of at most {SHORT} elements, saw {tensor.numel()}")
        return f'_unpacked("{packed}", {tensor.dtype}, {tuple(tensor.shape)})'
    shape = "" if tensor.numel() else f".reshape({tuple(tensor.shape)})"  # (0, 5) is [] as a list
    return f"torch.tensor({tensor.tolist()}, dtype={tensor.dtype}){shape}".replace("inf", 'float("inf")').replace("nan", 'float("nan")')


def _packed(tensor: torch.Tensor) -> str:
    """Return a tensor's bytes as text without quotes or backslashes."""
    return base64.b85encode(zlib.compress(bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist()), 9)).decode()


def tuple_text(items: Iterable[str]) -> str:
    """Return the text of a tuple."""
    shown = list(items)
    return f"({shown[0]},)" if len(shown) == 1 else f"({', '.join(shown)})"


def returned(ir: GraphIR, names: dict[fx.Node, str]) -> str:
    """Return the text of the results, nested as the original's and with its strides; flat where `nested` nests them."""
    if is_flat(ir):
        return tuple_text(leaf for leaf, result in zip(leaves(ir, names), ir.results, strict=True) if isinstance(result, fx.Node))
    return results.text(ir.structure, leaves(ir, names))


def nested(ir: GraphIR) -> str:
    """Return the function that nests flat results as the original's."""
    shown = [f"result_{number}" if isinstance(result, fx.Node) else repr(result) for number, result in enumerate(ir.results)]
    for number, view in ir.views.items():
        shown[number] = f"result_{view.of}.as_strided({view.shape}, {view.strides}, {view.offset})"
    flat = [leaf for leaf, result in zip(shown, ir.results, strict=True) if isinstance(result, fx.Node)]
    doc = '"""Return the results as the original nests them."""'
    return f"def nested({', '.join(flat)}):\n    {doc}\n    return {results.text(ir.structure, shown)}"


def leaves(ir: GraphIR, names: dict[fx.Node, str]) -> list[str]:
    """Return the texts of the flat results, with the original's strides; those whose nodes have no name yet are left empty."""
    strides = ir.strides or tuple(() for _ in ir.results)
    return [
        repr(result) if not isinstance(result, fx.Node) else _with_stride(ir, result, stride, names[result]) if result in names else ""
        for result, stride in zip(ir.results, strides, strict=True)
    ]


def _with_stride(ir: GraphIR, result: fx.Node, stride: tuple[int, ...], text: str) -> str:
    if result.op == "placeholder" or not stride:
        return text
    wanted = torch.empty_strided(value(result).shape, stride, device="meta")
    if wanted.is_contiguous():
        doubtful = ir.scheduled("channels_last") is not None or not value(result).is_contiguous()
        return f"{text}.contiguous()" if doubtful else text
    if value(result).stride() == stride:
        return text
    return f"torch.empty_strided({tuple(wanted.shape)}, {stride}, dtype={text}.dtype, device={text}.device).copy_({text})"


def function_text(function: Function, names: dict[fx.Node, str], doc: str) -> str:
    head = f"def {function.name}({', '.join(names[node] for node in function.parameters)}):"
    return "\n".join([head, f'    """{doc}"""', *(f"    {line}" for line in function.lines)])


def decorator(ir: GraphIR, identity: str = "") -> str:
    """Return the lines over `optimized`; `identity` stands for its text and the forms of its arguments."""
    if ir.scheduled("ahead_of_time"):
        return f'@_ahead_of_time("{identity}")\n'
    if ir.scheduled("plan"):
        return "@_planned\n"
    outer = "@full_precision\n" if ir.scheduled("full_precision_convolutions") else ""
    return outer + compile_decorator(ir)


def compile_decorator(ir: GraphIR) -> str:
    action = ir.scheduled("compile")
    if action is None:
        return ""
    mode = dict(action.params).get("mode", "default")
    return f"@torch.compile(dynamic=False{'' if mode == 'default' else f', mode={mode!r}'})\n"


def kernels(ir: GraphIR) -> list[str]:
    """Return the text of the generated functions that the graph calls, each once: C++ kernels in one source, then Python functions."""
    called: list[Any] = [node.target for node in ir.graph.nodes if hasattr(node.target, "python_text")]
    targets = {target.__name__: target for one in called for target in (*getattr(one, "kernels", ()), one)}
    compiled = [target for target in targets.values() if isinstance(target, Kernel)]
    parts = []
    if compiled:
        source = head() + "\n" + "\n".join(kernel.text for kernel in compiled)
        parts.append(standalone.loader(source, {kernel.__name__: kernel.pointers for kernel in compiled}))
    on_gpu = kernels_of(called)
    if on_gpu:
        parts.append(standalone_cuda.loader(*source_of(on_gpu)))
    if any(isinstance(target, Launches) for target in called):
        parts.append(launch_plan.loader())
    shared = dict.fromkeys(target.shared_text for target in targets.values() if hasattr(target, "shared_text"))
    texts = [*shared, *(target.python_text() for target in targets.values())]
    return [*parts, *(text.strip("\n") + "\n\n" for text in texts if text)]
