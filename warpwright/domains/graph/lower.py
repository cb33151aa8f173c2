"""From the graph IR to one readable Python file: the original's text, then `ModelNew`, which computes the same.

The text is a pure function of its arguments. `ModelNew` inherits the original's constructor, so parameter names and load_state_dict stay;
its forward checks that the call is one that was verified, and takes the original's forward for any other.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.base import Action, Candidate, Source, digest
from warpwright.domains.graph import results, template
from warpwright.domains.graph.cpp.kernel import Kernel, head
from warpwright.domains.graph.cuda.kernel import CudaKernel, source_of
from warpwright.domains.graph.emit import expression
from warpwright.domains.graph.ir import GraphIR, foldable, is_tensor, placeholders, role, type_text, value, written
from warpwright.errors import NotApplicable
from warpwright.native import standalone, standalone_cuda


@dataclass(frozen=True)
class Original:
    """What lowering needs of the task beside its graph."""

    name: str
    text: str
    """The program in KernelBench form."""
    init_inputs: tuple[Any, ...] = ()
    mode: str = "as_is"
    target: str = "cpu"


@dataclass(frozen=True)
class _Function:
    """A straight-line function of the generated file."""

    name: str
    parameters: tuple[fx.Node, ...]
    lines: tuple[str, ...]


def lower(ir: GraphIR, actions: Sequence[Action], original: Original) -> Candidate:
    """Return the candidate whose file is the original and `ModelNew` for `ir`."""
    text = _file(ir, tuple(actions), original)
    source = Source("python", (("optimized.py", text),))
    return Candidate(source, original.target, tuple(actions), proposer="graph", assumptions=ir.assumptions)


def _file(ir: GraphIR, actions: tuple[Action, ...], original: Original) -> str:
    alias = template.functional_alias(original.text)
    head = [_head(ir, actions, original), original.text.rstrip("\n"), "", "", template.RULER]
    head += [f"import torch\nimport torch.nn.functional as {alias}", "", ""]
    rest = _unreadable_class(ir, original) if ir.unreadable else _graph_parts(ir, original)
    text = "\n".join(rest)
    if alias != "F":
        text = re.sub(r"\bF\.", f"{alias}.", text)
    return "\n".join([*head, text, template.TAIL.replace("@DEVICE", original.target)])


def _graph_parts(ir: GraphIR, original: Original) -> list[str]:
    """Return the kernels, the straight-line functions and the class."""
    names = _names(ir)
    folded, rest = _split(ir)
    front = _frontier(folded)
    constants = None
    parts = [*results.imports(ir.structure), template.watch(), "", *_kernels(ir)]
    if front:
        constants = _Function("folded", _reads(folded, ()), tuple(_body(ir, folded, front, names)))
        parts += [_function_text(constants, names, template.FOLDED_DOC), "", ""]
    inputs = tuple(placeholders(ir, "input"))
    state = tuple(node for node in _reads(rest, ir.results) if role(node) != "input" and node.name in ir.state)
    parameters = (*inputs, *state, *front)
    shown = [names[node] for node in parameters]
    if ir.scheduled("full_precision_convolutions"):
        parts.append(template.FULL_PRECISION)
    if ir.scheduled("ahead_of_time"):
        parts += [template.AHEAD, _nested(ir), "", ""]
    main = _Function("optimized", parameters, tuple(_body(ir, rest, ir.results, names, final=True)))
    text = _function_text(main, dict(zip(parameters, shown, strict=True)), template.OPTIMIZED_DOC)
    parts += [_decorator(ir, digest(text, repr([_form(node) for node in parameters if is_tensor(node)]))) + text, "", ""]
    return parts + _model_class(ir, original, constants, state)


def _head(ir: GraphIR, actions: tuple[Action, ...], original: Original) -> str:
    lines = [f"# {original.name}: the original program, then ModelNew, which computes the same. Needs only torch."]
    lines += ["# Run this file to compare the two and to time them."]
    lines += ["# recipe:"] + [f"#     {action}" for action in actions] if actions else ["# recipe: none"]
    lines += ["# takes for granted:"] + [f"#     {text}" for text in ir.assumptions] if ir.assumptions else []
    return "\n".join([*lines, ""])


# --- functions -------------------------------------------------------------------------------------------------------


def _split(ir: GraphIR) -> tuple[list[fx.Node], list[fx.Node]]:
    """Return the calls to compute once per state (none without fold_parameters), and the others."""
    calls = [node for node in ir.graph.nodes if node.op == "call_function"]
    if ir.scheduled("fold_parameters") is None:
        return [], calls
    fixed = foldable(ir.graph)
    return [n for n in calls if n in fixed], [n for n in calls if n not in fixed]


def _frontier(folded: Sequence[fx.Node]) -> tuple[fx.Node, ...]:
    """Return the folded values that are read by what is not folded."""
    inside = set(folded)
    return tuple(node for node in folded if any(user not in inside for user in node.users))


def _reads(nodes: Iterable[fx.Node], results: Iterable[Any]) -> tuple[fx.Node, ...]:
    """Return the placeholders, other than tensor literals, that the calls or the results read, in graph order."""
    found = {arg for node in nodes for arg in node.all_input_nodes if arg.op == "placeholder"}
    found |= {r for r in results if isinstance(r, fx.Node) and r.op == "placeholder"}
    return tuple(sorted(found))


def _names(ir: GraphIR) -> dict[fx.Node, str]:
    """Return the variable of each placeholder: an input's own name, a parameter's path with underscores."""
    taken = {node.name for node in ir.graph.nodes} | {"torch", "F", "self", "optimized", "folded"}
    names: dict[fx.Node, str] = {}
    for node in ir.graph.nodes:
        if node.op == "placeholder":
            text = ir.state[node.name].replace(".", "_") if node.name in ir.state else node.name
            text = text if text.isidentifier() else f"state_{text}"  # nn.Sequential: 0.weight
            while node.name in ir.state and text in taken:
                text += "_"
            taken.add(text)
            names[node] = text
    return names


def _body(ir: GraphIR, nodes: Sequence[fx.Node], results: Sequence[Any], names: dict[fx.Node, str], final: bool = False) -> list[str]:
    """Return the lines of straight-line code: a value takes over the name of an operand that dies there, so memory is freed as early as
    in the original."""
    lines, kept = [], {r for r in results if isinstance(r, fx.Node)}
    inside = set(nodes)
    last = {arg: node for node in nodes for arg in node.all_input_nodes if arg in inside or role(arg) == "input"}
    holders = [n for n in ir.graph.nodes if role(n) == ("input" if final else "state") and is_tensor(n) and (final or n.users.keys() & inside)]
    device = f"{names[holders[0]]}.device" if holders else '"cpu"'
    for node in ir.graph.nodes:
        if node.name in ir.constants and any(user in inside for user in node.users):
            lines.append(f"{names[node]} = {_literal(ir.constants[node.name])}")
    free_inputs = {n for n in placeholders(ir, "input") if n not in holders[:1]}
    for node in nodes:
        shown = expression(node, names.__getitem__, device)
        dying = [a for a in node.all_input_nodes if last.get(a) is node and a not in kept and (a in inside or a in free_inputs)]
        if written(node) and not node.users:
            lines.append(shown)
            continue
        names[node] = names[dying[0]] if dying else node.name
        lines.append(f"{names[node]} = {shown}  # {_comment(node)}")
        rest = [names[a] for a in dying[1:] if a in inside]
        lines += [f"del {', '.join(rest)}"] if rest else []
    return [*lines, f"return {_returned(ir, names) if final else _tuple(names[n] for n in results)}"]


def _comment(node: fx.Node) -> str:
    val = node.meta["val"]
    return type_text(node) if isinstance(val, torch.Tensor) else f"{len(val)} results" if isinstance(val, tuple | list) else "value"


def _literal(tensor: torch.Tensor) -> str:
    if tensor.numel() > 1024:
        raise NotApplicable(f"expected a tensor literal of at most 1024 elements, saw {tensor.numel()}")
    return f"torch.tensor({tensor.tolist()}, dtype={tensor.dtype})".replace("inf", 'float("inf")').replace("nan", 'float("nan")')


def _tuple(items: Iterable[str]) -> str:
    """Return the text of a tuple."""
    shown = list(items)
    return f"({shown[0]},)" if len(shown) == 1 else f"({', '.join(shown)})"


def _returned(ir: GraphIR, names: dict[fx.Node, str]) -> str:
    """Return the text of the results, nested as the original's and with its strides; flat where `_nested` nests them."""
    leaves = []
    strides = ir.strides or tuple(() for _ in ir.results)
    for result, stride in zip(ir.results, strides, strict=True):
        leaves.append(_with_stride(ir, result, stride, names[result]) if isinstance(result, fx.Node) else repr(result))
    if ir.scheduled("ahead_of_time"):
        return _tuple(leaf for leaf, result in zip(leaves, ir.results, strict=True) if isinstance(result, fx.Node))
    return results.text(ir.structure, leaves)


def _nested(ir: GraphIR) -> str:
    """Return the function that nests flat results as the original's."""
    leaves = [f"result_{number}" if isinstance(result, fx.Node) else repr(result) for number, result in enumerate(ir.results)]
    flat = [leaf for leaf, result in zip(leaves, ir.results, strict=True) if isinstance(result, fx.Node)]
    doc = '"""Return the results as the original nests them."""'
    return f"def nested({', '.join(flat)}):\n    {doc}\n    return {results.text(ir.structure, leaves)}"


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


def _function_text(function: _Function, names: dict[fx.Node, str], doc: str) -> str:
    head = f"def {function.name}({', '.join(names[node] for node in function.parameters)}):"
    return "\n".join([head, f'    """{doc}"""', *(f"    {line}" for line in function.lines)])


def _decorator(ir: GraphIR, identity: str) -> str:
    """Return the lines over `optimized`; `identity` stands for its text and the forms of its arguments."""
    if ir.scheduled("ahead_of_time"):
        return f'@_ahead_of_time("{identity}")\n'
    outer = "@full_precision\n" if ir.scheduled("full_precision_convolutions") else ""
    return outer + _compile_decorator(ir)


def _compile_decorator(ir: GraphIR) -> str:
    action = ir.scheduled("compile")
    if action is None:
        return ""
    mode = dict(action.params).get("mode", "default")
    return f"@torch.compile(dynamic=False{'' if mode == 'default' else f', mode={mode!r}'})\n"


def _kernels(ir: GraphIR) -> list[str]:
    """Return the text of the generated functions that the graph calls, each once: C++ kernels in one source, then Python functions."""
    targets = {node.target.__name__: node.target for node in ir.graph.nodes if hasattr(node.target, "python_text")}
    compiled = [target for target in targets.values() if isinstance(target, Kernel)]
    parts = []
    if compiled:
        source = head() + "\n" + "\n".join(kernel.text for kernel in compiled)
        parts.append(standalone.loader(source, {kernel.__name__: kernel.pointers for kernel in compiled}))
    on_gpu = [target for target in targets.values() if isinstance(target, CudaKernel)]
    if on_gpu:
        parts.append(standalone_cuda.loader(*source_of(on_gpu)))
    return [*parts, *(target.python_text().strip("\n") + "\n\n" for target in targets.values())]


# --- the class -------------------------------------------------------------------------------------------------------


def _model_class(ir: GraphIR, original: Original, constants: _Function | None, state: Sequence[fx.Node]) -> list[str]:
    folded = list(constants.parameters) if constants is not None else []
    values = _tuple([*(["*watch.reads()"] if state else []), *(["*watch.folded(folded)"] if folded else [])])
    call = f"optimized({', '.join(['*leaves', *([values[1:-1].rstrip(',')] if state or folded else [])])})"
    if ir.scheduled("ahead_of_time") is not None:
        call = f"nested(*{call})"
    if ir.scheduled("cuda_graph") is not None:
        writes = {target for node in ir.graph.nodes for target in written(node)}
        changed = _tuple(f"watch.reads()[{i}]" for i, node in enumerate(state) if node in writes)
        call = f"watch.recorded_as(_Recorded)(optimized, leaves, {values}, {changed})"
    forms = {ir.state[node.name]: _form(node) for node in dict.fromkeys([*state, *folded])}
    table = _table(ir, original, forms, [ir.state[node.name] for node in state], [ir.state[node.name] for node in folded])
    return [*table, *_class(ir, original, call), *template.class_tail(folds=bool(folded))]


def _unreadable_class(ir: GraphIR, original: Original) -> list[str]:
    """Return the class for a model that was not captured: its own forward, scheduled."""
    parts = [f"# not captured: {ir.unreadable}", "", template.watch(), ""]
    function = "Model.forward"
    if ir.scheduled("compile") is not None:
        function = "compiled"
        parts += [f"compiled = {_compile_decorator(ir)[1:].strip()}(Model.forward)", "", ""]
    call = f"{function}(self, *args, **kwargs)"
    if ir.scheduled("cuda_graph") is not None:
        if _is_nested(ir.call):
            raise NotApplicable("expected plain tensors as arguments for a CUDA graph of a model that was not captured, saw nested ones")
        count = len(ir.inputs)
        call = (
            f"watch.recorded_as(_Recorded)(lambda *given: {function}(self, *given[:{count}]), leaves, watch.reads(), "
            "[t for t in watch.reads() if not isinstance(t, torch.nn.Parameter)])"
        )
    return [*parts, *_table(ir, original, None, None, ()), *_class(ir, original, call), *template.class_tail(folds=False)]


def _class(ir: GraphIR, original: Original, call: str) -> list[str]:
    """Return the class up to the end of `forward`."""
    lines = [template.RECORDED] if ir.scheduled("cuda_graph") is not None else []
    lines += ["class ModelNew(Model):", f'    """{template.MODEL_DOC}"""', ""]
    literal = _is_literal(original.init_inputs)
    same = f"not kwargs and args == {original.init_inputs!r}" if literal else "True"
    lines += ["    def __init__(self, *args, **kwargs):", "        super().__init__(*args, **kwargs)"]
    if original.mode != "as_is":
        lines.append(f"        self.train({original.mode == 'train'})")
    lines += [f"        self.built_as_verified = {same}", "        self._built = _Watch.form(self)", ""]
    return [*lines, *template.forward(len(ir.call), _is_nested(ir.call), call)]


def _table(ir: GraphIR, original: Original, forms: Mapping[str, Any] | None, reads: Sequence[str] | None, folded: Sequence[str]) -> list[str]:
    """Return the text of VERIFIED: the calls and the state that there is a faster program for. No `forms`: any state that the model has."""
    lines = ["VERIFIED = {", f'    "device": "{original.target}",', f'    "training": {ir.flags!r},', '    "inputs": (']
    nodes = {node.name: node for node in placeholders(ir, "input")}
    for name in ir.inputs:
        form = (_constant(ir.values[name]),) if name in ir.values else tuple(map(repr, _form(nodes[name])))
        lines.append(f"        {_tuple([repr(name), *form])},")
    lines += ["    ),", '    "state": {' if forms is not None else '    "state": None,']
    if forms is not None:
        lines += [f'        {path!r}: {_tuple(map(repr, form))},' for path, form in forms.items()] + ["    },"]
    lines += [f'    "reads": {None if reads is None else _tuple(map(repr, reads))},', f'    "folded": {_tuple(map(repr, folded))},', "}", "", ""]
    return lines


def _form(node: fx.Node) -> tuple[tuple[int, ...], torch.dtype, tuple[int, ...] | None]:
    """Return a tensor's shape, dtype and strides (None: contiguous)."""
    val = value(node)
    return tuple(val.shape), val.dtype, None if val.is_contiguous() else val.stride()


def _constant(item: Any) -> str:
    """Return the text of a number, a text or None."""
    return f'float("{item}")' if isinstance(item, float) and not math.isfinite(item) else repr(item)


def _is_nested(call: Any) -> bool:
    return any(not isinstance(item, int) for item in call)


def _is_literal(values: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(values)) == values)
    except (ValueError, SyntaxError):
        return False
