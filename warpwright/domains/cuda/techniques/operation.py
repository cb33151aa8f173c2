"""The task is an operation that has a template (templates/device): its entry calls that, at the sizes that the task declares.

    void entry(const float* x, float* out, int n) { body }
    ->   void entry(const float* x, float* out, int n) { if (n == 33554432) { ww_prefix_sum(x, out, 33554432); return; } body }

At any other sizes the kernels as given run: what is verified is what the template is used for.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warpwright.base import Action
from warpwright.domains.cuda import unit
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.shape import expect
from warpwright.domains.transpile.frontend import scan
from warpwright.errors import NotApplicable
from warpwright.space import Traits
from warpwright.templates import device

if TYPE_CHECKING:
    from warpwright.domains.cuda.operations import Call, Operation


@dataclass(frozen=True)
class Operate:
    """A task's entry -> a template that computes the same operation."""

    python: str
    """The task file."""
    task: str
    target: str = "cuda"

    name = "operate"
    traits = Traits("S", tried_first=True)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the templates of the task's operation with their own parameters, that for tensor cores first, then with each other value of one."""
        known = _known(self.python, self.task)
        if known is None:
            return
        operation, call = known
        try:
            self.apply(plan, Action(self.name, call.entry, (("template", operation.template),)))
        except NotApplicable:
            return
        templates = (*(of_tensor_cores(operation) if self.target == "cuda" else ()), operation.template)
        yield from (Action(self.name, call.entry, (("template", template),)) for template in templates)
        for template in templates:
            fixed = _fixed(operation, template)
            for parameter, (_, *others) in device.parameters(template).items():
                for value in others if parameter not in fixed else ():
                    yield Action(self.name, call.entry, (("template", template), (parameter.removeprefix("WW_"), value)))

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with the template, and an entry that calls it."""
        known = _known(self.python, self.task)
        expect(known is not None, "a task that is one of the operations that have a template")
        assert known is not None
        operation, call = known
        expect(not operated(plan) and "write" not in plan.done, "the text as given, or rewritten, without a template")
        params = dict(action.params)
        name = str(params.pop("template", ""))
        legal = name in (operation.template, *of_tensor_cores(operation))
        expect(legal and action.at == call.entry, f"the template {operation.template} in {call.entry}")
        values = {f"WW_{name}": int(value) for name, value in params.items()}
        fixed = _fixed(operation, name)
        expect(not values.keys() & fixed.keys(), "parameters that the operation leaves open")
        template = device.text(name, {**fixed, **values})
        text = unit.read(plan.text).changed([])  # without macros, whose names the template might have
        text = _with_call(text, call, CALLS[name](operation, _names(text, operation, call)))
        return replace(plan, text=f"{template}\n{text}", done=(*plan.done, f"{self.name} {action.at}"))


def operated(plan: Plan) -> bool:
    """Does a plan's entry call a template? What is left of the given text is for other sizes then, and not worth a rewrite."""
    return any(one.startswith(f"{Operate.name} ") for one in plan.done)


@functools.lru_cache(maxsize=64)
def _known(python: str, task: str) -> tuple[Operation, Call] | None:
    from warpwright.domains.cuda import operations  # and torch with it

    return operations.of_task(python, task)


def _fixed(operation: Operation, template: str) -> Mapping[str, int]:
    """Return the parameters of a template that the operation decides."""
    if template == "radix_sort":
        return {"WW_SORT_WHOLE": int(operation.element == "int")}
    if template == "normal_equations_tensor":
        return {"WW_OLT_TILES": 2 * -(-int(dict(operation.sizes)["m"]) // 16)}
    if template == "window_product":
        size = dict(operation.sizes)
        return {"WW_WIN_ROWS": int(size["rows"]), "WW_WIN_COLUMNS": int(size["columns"])}
    depth_of = {"attention": "WW_ATT_DEPTH", "attention_tf32": "WW_ATF_DEPTH"}
    if template not in depth_of:
        return {}
    depth = int(dict(operation.sizes)["depth"])
    return {depth_of[template]: next(wide for wide in (16, 32, 64, 128) if wide >= depth)}


def entry_parameters(text: str, entry: str) -> tuple[list[scan.Parameter], int, int]:
    """Return an entry's parameters, and where its body begins and ends: after the opening brace, after the closing one."""
    tokens = scan.tokens(text)
    for piece in scan.pieces(tokens):
        words = [t for t in tokens if piece.start <= t.start < (piece.brace if piece.brace >= 0 else piece.end)]
        texts = [t.text for t in words]
        if piece.brace < 0 or "(" not in texts or texts[texts.index("(") - 1] != entry or "__global__" in texts:
            continue
        at = texts.index("(")
        inside = text[words[at].end : words[scan.matching(words, at)].start]
        return [scan.parameter(p, number) for number, p in enumerate(scan.split_commas(inside))], piece.brace + 1, piece.end
    raise NotApplicable(f"expected a host function {entry} with a body, saw none")


def _names(text: str, operation: Operation, call: Call) -> dict[str, str]:
    """Return the C names of an operation's inputs (`0`, `1`, in the template's order) and of its output."""
    parameters, _, _ = entry_parameters(text, call.entry)
    expect(len(parameters) == len(call.arguments), f"{len(call.arguments)} parameters of {call.entry}", str(len(parameters)))
    names: dict[str, str] = {}
    for parameter, (kind, value) in zip(parameters, call.arguments, strict=True):
        if kind == "copy":
            expect(operation.template in IN_PLACE and value in operation.inputs, "a template that may write where it reads")
            names["0"] = parameter.name
        if kind in ("output", "copy"):
            names["out"] = parameter.name
            expect("const" not in parameter.text.split("*")[0], "an output that may be written")
        if kind in ("output", "input", "copy"):
            plain = re.search(rf"\b{operation.element}\b", parameter.text) and "unsigned" not in parameter.text and parameter.text.count("*") == 1
            expect(bool(plain), f"addresses of {operation.element}", parameter.text)
        if kind == "input" and value in operation.inputs:
            names.update({str(at): parameter.name for at, which in enumerate(operation.inputs) if which == value})
    expect(len(names) == 1 + len(operation.inputs), "an entry that is given all inputs")
    return names


def _with_call(text: str, call: Call, statement: str) -> str:
    """Return the text with an entry that runs a statement where its numbers are those of the task."""
    parameters, at, _ = entry_parameters(text, call.entry)
    numbers = [(p.name, value) for p, (kind, value) in zip(parameters, call.arguments, strict=True) if kind == "number"]
    expect(all(isinstance(value, int | float) and math.isfinite(value) for _, value in numbers), "numbers")
    condition = " && ".join(f"{name} == {_literal(value)}" for name, value in numbers) or "true"
    return f"{text[:at]}\n    if ({condition}) {{\n        {statement}\n        return;\n    }}{text[at:]}"


def _literal(value: float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value}ll" if abs(value) >= 1 << 31 else str(value)
    return f"(float){value!r}"


def _attention(function: str, sizes: str) -> Callable[[Operation, Mapping[str, str]], str]:
    def written(operation: Operation, names: Mapping[str, str]) -> str:
        size = dict(operation.sizes)
        order = ("rows", "keys", "depth", "q_head", "q_row", "k_head", "k_row", "v_head", "v_row", "o_head", "o_row")
        held = "".join(f" ww_sizes.{name} = {int(size[name])};" for name in order)
        scale = f" ww_sizes.scale = (float){size['scale']!r};"
        call = f"{function}({names['0']}, {names['1']}, {names['2']}, {names['out']}, {int(size['heads'])}, ww_sizes);"
        return f"{sizes} ww_sizes;{held}{scale}\n        {call}"

    return written


def _plain(function: str, *sizes: str) -> Callable[[Operation, Mapping[str, str]], str]:
    def written(operation: Operation, names: Mapping[str, str]) -> str:
        values = dict(operation.sizes)
        inputs = [names[str(at)] for at in range(len(operation.inputs))]
        return f"{function}({', '.join([*inputs, names['out'], *(str(int(values[size])) for size in sizes)])});"

    return written


IN_PLACE = frozenset({"radix_sort"})
"""Templates whose output may be their input."""

OF_TENSOR_CORES: Mapping[str, tuple[str, ...]] = {
    "product": ("product_tf32",),
    "normal_equations": ("normal_equations_tensor",),
    "attention": ("attention_tf32",),
}
"""Template -> others of the same operation, for GPUs alone: translated, their fragments take minutes to build."""


def of_tensor_cores(operation: Operation) -> tuple[str, ...]:
    """Return the templates of an operation that compute on tensor cores, at its sizes."""
    if operation.template == "attention" and dict(operation.sizes)["depth"] > 64:  # a head's queries would not fit into registers
        return ()
    return OF_TENSOR_CORES.get(operation.template, ())


CALLS: Mapping[str, Callable[[Operation, Mapping[str, str]], str]] = {
    "prefix_sum": _plain("ww_prefix_sum", "n"),
    "radix_sort": _plain("ww_sort", "n"),
    "top_k": _plain("ww_top", "n", "k"),
    "product": _plain("ww_product", "m", "n", "k"),
    "product_tf32": _plain("ww_product_tf32", "m", "n", "k"),
    "normal_equations": _plain("ww_least_squares", "n", "m"),
    "normal_equations_tensor": _plain("ww_least_squares_tensor", "n", "m"),
    "window_product": _plain("ww_window_product", "height", "width"),
    "attention": _attention("ww_attention", "ww_att_sizes"),
    "attention_tf32": _attention("ww_attention_tf32", "ww_atf_sizes"),
}
"""Template -> the statement that calls it."""
