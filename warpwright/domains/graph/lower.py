"""From the graph IR to one readable Python file: the original's text, then `ModelNew`, which computes the same.

The text is a pure function of its arguments. `ModelNew` inherits the original's constructor, so parameter names and load_state_dict stay;
its forward checks that the call is one that was verified, and takes the original's forward for any other.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.base import Action, Candidate, Source, digest
from warpwright.domains.graph import template
from warpwright.domains.graph.capture import results
from warpwright.domains.graph.ir import GraphIR, is_tensor, placeholders, value, written
from warpwright.domains.graph.plan.program import parameters, plan
from warpwright.domains.graph.text import autograd, straight
from warpwright.domains.graph.text.apart import apart
from warpwright.errors import NotApplicable
from warpwright.native import standalone
from warpwright.tasks import training


@dataclass(frozen=True)
class Original:
    """What lowering needs of the task beside its graph."""

    name: str
    text: str
    """The program in KernelBench form."""
    init_inputs: tuple[Any, ...] = ()
    mode: str = "as_is"
    target: str = "cpu"
    part: bool = False
    """It is a part of a model, whose class takes the place of the part's own when the model is constructed."""
    after: int = 0
    """Programs for other calls of the same model that come after this one in turn."""
    several: bool = False
    """Are there any? The last in turn says why none of them fits."""

    @property
    def place(self) -> template.Place:
        """Where the program stands in the chain of the model's programs."""
        return "only" if not self.several else "inner" if self.after else "last"


def lower(ir: GraphIR, actions: Sequence[Action], original: Original) -> Candidate:
    """Return the candidate whose file is the original and `ModelNew` for `ir`."""
    text = _file(ir, tuple(actions), original)
    source = Source("python", (("optimized.py", text),), entry(ir.training is not None))
    return Candidate(source, original.target, tuple(actions), proposer="graph", assumptions=ir.assumptions)


def _file(ir: GraphIR, actions: tuple[Action, ...], original: Original) -> str:
    alias = template.functional_alias(original.text)
    top = [head(ir.assumptions, actions, original), original.text.rstrip("\n"), "", "", template.RULER]
    opening = [f"import torch\nimport torch.nn.functional as {alias}", "", ""]
    text = "\n".join(_program(ir, original))
    if alias != "F":
        text = re.sub(r"\bF\.", f"{alias}.", text)
    return "\n".join([*top, apart(original.text, "\n".join([*opening, text, tail(ir.training is not None).replace("@DEVICE", original.target)]))])


def program_text(ir: GraphIR, original: Original) -> str:
    """Return what stands between the original and the self-test, without `template.watch()`."""
    return "\n".join(part for part in _program(ir, original) if part != template.watch())


def entry(trained: bool) -> str:
    """Return the class of a file that is verified: of a training step, where one is `trained`."""
    return training.STEP_NEW if trained else training.SHIPPED


def tail(trained: bool) -> str:
    """Return what a file ends with: its self-test, and for a training step the class of that."""
    return f"{training.NEW_TEXT}\n{template.step_tail()}" if trained else template.TAIL


def _program(ir: GraphIR, original: Original) -> list[str]:
    return _unreadable_class(ir, original) if ir.unreadable else _graph_parts(ir, original)


def _graph_parts(ir: GraphIR, original: Original) -> list[str]:
    """Return the kernels, the straight-line functions and the class."""
    if ir.training is not None and ir.training.tangents:
        return _training_parts(ir, original)
    if ir.training is not None and (cut_off := autograd.cut_off(ir)):
        raise NotApplicable(f"{cut_off[0]} has no gradient any more, where it was zero", "differentiate() gives it zeros")
    names = straight.names_of(ir)
    folded, rest = straight.split(ir)
    front = straight.frontier(folded)
    constants = None
    parts = [*results.imports(ir.structure), template.watch(), "", *straight.kernels(ir), *straight.literals(ir)]
    if front:
        read = tuple(node for node in straight.reads(folded, ()) if node.name in ir.state)  # literals stand in the text
        constants = straight.Function("folded", read, tuple(straight.body(ir, folded, front, names)))
        parts += [straight.function_text(constants, names, template.FOLDED_DOC), "", ""]
    inputs = tuple(placeholders(ir, "input"))
    state = straight.state(ir, rest)
    parameters = (*inputs, *state, *front)
    shown = [names[node] for node in parameters]
    if ir.scheduled("full_precision_convolutions"):
        parts.append(template.FULL_PRECISION)
    main = straight.Function("optimized", parameters, tuple(straight.body(ir, rest, ir.results, names, final=True)))
    if ir.scheduled("ahead_of_time"):
        parts.append(template.AHEAD)
    if ir.scheduled("plan"):
        parts.append(_plan_text(ir))
    if straight.is_flat(ir):
        parts += [straight.nested(ir), "", ""]
    text = straight.function_text(main, dict(zip(parameters, shown, strict=True)), template.OPTIMIZED_DOC)
    identity = digest(text, repr([_form(node) for node in parameters if is_tensor(node)]))
    parts += [straight.decorator(ir, identity) + text, "", ""]
    return parts + _model_class(ir, original, constants, state)


def _plan_text(ir: GraphIR) -> str:
    """Return the native plan's source, its loader, and what calls it."""
    planned = plan(ir)
    forms = []
    for sizes, strides, kind in planned.results:
        dense = torch.empty_strided(sizes, strides, device="meta").is_contiguous()
        form = f"empty({sizes}" if dense else f"empty_strided({sizes}, {strides}"
        forms.append(f'torch.{form}, dtype={kind}, device="cpu")')
    symbols = "".join(f'    "{symbol}",\n' for symbol in planned.symbols)
    text = template.PLAN.replace("@SYMBOLS", symbols).replace("@RESULTS", straight.tuple_text(forms))
    is_given = [is_tensor(node) for node in parameters(ir)]
    taken = "tensors" if all(is_given) else f"[tensors[i] for i in {[i for i, tensor in enumerate(is_given) if tensor]}]"
    loader = standalone.loader(planned.source, {"plan_run": 1, "plan_bind": 1})
    return loader + text.replace("@TENSORS", taken).replace("@COUNT", str(sum(is_given) + len(forms)))


def _training_parts(ir: GraphIR, original: Original) -> list[str]:
    """Return the kernels, the two functions of a training step, and the class."""
    step = autograd.parts(ir)
    forms = {ir.state[node.name]: _form(node) for node in step.state}
    table = _table(ir, original, forms, list(forms), ())
    call = "verified(leaves, watch.reads())"
    head = [*results.imports(ir.structure), template.watch(), "", *straight.kernels(ir)]
    return [*head, *step.lines, *table, *_class(ir, original, call), *_class_tail(original)]


RECIPE = "# recipe:"
"""The line after which a file names its actions, a line each."""


def head(assumptions: Sequence[str], actions: Sequence[Action], original: Original, about: Sequence[str] = ()) -> str:
    """Return a file's first lines."""
    lines = [f"# {original.name}: the original program, then ModelNew, which computes the same. Needs only torch."]
    lines += ["# Run this file to compare the two and to time them."]
    lines += [RECIPE] + [f"#     {action}" for action in actions] if actions else ["# recipe: none"]
    lines += [f"# {line}" for line in about]
    lines += ["# takes for granted:"] + [f"#     {text}" for text in assumptions] if assumptions else []
    return "\n".join([*lines, ""])


def body(candidate: Candidate) -> str:
    """Return a program's text without its recipe, which recipes share that make one program; "" for the original's own, which is timed as it is."""
    lines = candidate.source.text.split("\n")
    if not candidate.actions or RECIPE not in lines:
        return ""
    began = lines.index(RECIPE)
    rest = [line for file in candidate.source.files[1:] for line in file]
    return "\n".join([*lines[:began], *lines[began + 1 + len(candidate.actions) :], *rest])


# --- the class -------------------------------------------------------------------------------------------------------


def _model_class(ir: GraphIR, original: Original, constants: straight.Function | None, state: Sequence[fx.Node]) -> list[str]:
    folded = list(constants.parameters) if constants is not None else []
    values = straight.tuple_text([*(["*watch.reads()"] if state else []), *(["*watch.folded(folded)"] if folded else [])])
    call = f"optimized({', '.join(['*leaves', *([values[1:-1].rstrip(',')] if state or folded else [])])})"
    if ir.scheduled("cuda_graph") is not None:
        writes = {target for node in ir.graph.nodes for target in written(node)}
        changed = straight.tuple_text(str(i) for i, node in enumerate(state) if node in writes)  # looked up where it is recorded, not in each call
        call = f"watch.recorded_as(_Recorded)(optimized, leaves, {values}, {changed})"
    if straight.is_flat(ir):
        call = f"nested(*{call})"
    forms = {ir.state[node.name]: _form(node) for node in dict.fromkeys([*state, *folded])}
    table = _table(ir, original, forms, [ir.state[node.name] for node in state], [ir.state[node.name] for node in folded])
    return [*table, *_class(ir, original, call), *_class_tail(original, bool(folded))]


def _unreadable_class(ir: GraphIR, original: Original) -> list[str]:
    """Return the class for a model that was not captured: its own forward, scheduled."""
    parts = [f"# not captured: {ir.unreadable}", "", template.watch(), ""]
    function = "Model.forward"
    if ir.scheduled("compile") is not None:
        function = "compiled"
        parts += [f"compiled = {straight.compile_decorator(ir)[1:].strip()}(Model.forward)", "", ""]
    call = f"{function}(self, *args, **kwargs)"
    if ir.scheduled("cuda_graph") is not None:
        if _is_nested(ir.call):
            raise NotApplicable("expected plain tensors as arguments for a CUDA graph of a model that was not captured, saw nested ones")
        count = len(ir.inputs)
        call = (
            f"watch.recorded_as(_Recorded)(lambda *given: {function}(self, *given[:{count}]), leaves, watch.reads(), "
            "[i for i, t in enumerate(watch.reads()) if not isinstance(t, torch.nn.Parameter)])"
        )
    return [*parts, *_table(ir, original, None, None, ()), *_class(ir, original, call), *_class_tail(original)]


def _class(ir: GraphIR, original: Original, call: str) -> list[str]:
    """Return the class up to the end of `forward`."""
    lines = [template.recorded()] if ir.scheduled("cuda_graph") is not None else []
    lines += [template.nest()] if _is_nested(ir.call) else []
    lines += ["class ModelNew(Model):", f'    """{template.MODEL_DOC}"""', ""]
    if not original.part and not original.after:
        lines += [*constructor(original), "        self._built = _Watch.form(self)", ""]
    taken = ir.call if _is_nested(ir.call) else None
    return [*lines, *template.forward(len(ir.call), taken, call, original.place, _held_as(original))]


def _class_tail(original: Original, folds: bool = False) -> list[str]:
    return template.class_tail(folds, original.place)


def _held_as(original: Original) -> str:
    """Return the name under which a model holds what is kept of it for this program."""
    return f"_watch_{original.after}" if original.after else "_watch"


def constructor(original: Original) -> list[str]:
    """Return the lines of `__init__` that all programs have."""
    lines = ["    def __init__(self, *args, **kwargs):", "        super().__init__(*args, **kwargs)"]
    if original.mode != "as_is":
        lines.append(f"        self.train({original.mode == 'train'})")
    same = f"not kwargs and args == {original.init_inputs!r}" if _is_literal(original.init_inputs) else "True"
    return [*lines, f"        self.built_as_verified = {same}"]


def _table(ir: GraphIR, original: Original, forms: Mapping[str, Any] | None, reads: Sequence[str] | None, folded: Sequence[str]) -> list[str]:
    """Return the text of VERIFIED: the calls and the state that there is a faster program for. No `forms`: any state that the model has."""
    lines = ["VERIFIED = {", f'    "device": "{original.target}",', f'    "training": {ir.flags!r},', '    "inputs": (']
    nodes = {node.name: node for node in placeholders(ir, "input")}
    for name in ir.inputs[: -len(ir.training.tangents)] if ir.training is not None and ir.training.tangents else ir.inputs:
        form = (_constant(ir.values[name]),) if name in ir.values else tuple(map(repr, _form(nodes[name])))
        lines.append(f"        {straight.tuple_text([repr(name), *form])},")
    lines += ["    ),", '    "state": {' if forms is not None else '    "state": None,']
    if forms is not None:
        lines += [f'        {path!r}: {straight.tuple_text(map(repr, form))},' for path, form in forms.items()] + ["    },"]
    lines += [f'    "watch": "{_held_as(original)}",'] if original.after else []
    lines += [f'    "reads": {None if reads is None else straight.tuple_text(map(repr, reads))},']
    lines += [f'    "folded": {straight.tuple_text(map(repr, folded))},']
    lines += [f'    "gradients": {autograd.verified_gradients(ir)},'] if ir.training is not None else []
    lines += ["}", "", ""]
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
