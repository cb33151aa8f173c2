"""Template kernels: the instance that is launched becomes a kernel of its own, which the other rewrites can read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.base import Action
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.unit import ENTRY_CODES, Launch
from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.scan import Kernel
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.errors import NotApplicable
from warpwright.space import Traits

TYPES = frozenset({*ENTRY_CODES, "half", "__half", "half2", "__half2", "__nv_bfloat16", "float2", "float4", "int2", "int4"})
"""Types that mean the same everywhere in a text."""

_VALUE = re.compile(r"-?\d+[uUlL]*|0x[0-9a-fA-F]+[uUlL]*|true|false")
_PARAMETER = re.compile(
    r"(?P<kind>typename|class|(?:unsigned |const )*(?:int|unsigned|bool|size_t|long|short|char|uint32_t|int32_t)(?: int)?)\s+(?P<name>\w+)"
)


class Specialise:
    """`template <typename T, int N> k(T* x)`, launched as `k<float, 4>` -> `k_float_4(float* x)` with 4 for N: the same code.

    Legal where every launch names all of the template's arguments, as numbers and plain types.
    """

    name = "specialise"
    traits = Traits("E", enabling=True, idle=True)

    def sites(self, ir: Plan) -> Iterator[Action]:
        """Yield the action for each template kernel whose launches say all there is to know."""
        for name, kernel in ir.unit.templates.items():
            if _instances(ir, kernel):
                yield Action(self.name, name)

    def apply(self, ir: Plan, action: Action) -> Plan:
        """Return the text with a kernel for each instance that is launched, and the launches of those."""
        unit = ir.unit
        kernel = unit.templates.get(action.at)
        instances = _instances(ir, kernel) if kernel is not None else {}
        if kernel is None or not instances:
            raise NotApplicable(f"expected a template kernel whose launches name its arguments, saw {action.at}")
        texts, changes = dict[str, str](), []
        for launch, values in instances.items():
            name = "_".join([kernel.name, *(re.sub(r"\W+", "_", value) for value in values)])
            texts[name] = _plain(unit.text, kernel, dict(zip(kernel.template_names, values, strict=True)), name)
            changes.append(Edit(launch.start, launch.inside[0] - 3, name))
        changes.append(Edit(kernel.end, kernel.end, "\n\n" + "\n\n".join(texts.values()) + "\n"))
        return ir.then(unit.changed(changes), self.name, action.at)


def _instances(ir: Plan, kernel: Kernel) -> dict[Launch, tuple[str, ...]]:
    """Return the launches of a template kernel with the template's arguments of each; none where one of them does not name all."""
    kinds = _kinds(kernel)
    instances: dict[Launch, tuple[str, ...]] = {}
    for launch in ir.unit.launches:
        if launch.kernel != kernel.name:
            continue
        values = tuple(" ".join(value.split()) for value in scan.split_commas(launch.instance)) if launch.instance else ()
        if not kinds or len(values) != len(kinds) or not all(_means(kind, value) for kind, value in zip(kinds, values, strict=True)):
            return {}
        instances[launch] = values
    return instances


def _kinds(kernel: Kernel) -> list[str]:
    """Return whether each parameter of a kernel's template is a type or a value; none where one is neither, or in a namespace."""
    inside = kernel.template.partition("<")[2].rpartition(">")[0]
    matches = [_PARAMETER.fullmatch(" ".join(part.partition("=")[0].split())) for part in scan.split_commas(inside)]
    if kernel.scope or not all(matches) or len(matches) != len(kernel.template_names):
        return []
    return ["type" if match["kind"] in ("typename", "class") else "value" for match in matches if match is not None]


def _means(kind: str, value: str) -> bool:
    return value in TYPES if kind == "type" else _VALUE.fullmatch(value) is not None


def _plain(text: str, kernel: Kernel, values: dict[str, str], name: str) -> str:
    """Return the text of a template kernel with its parameters replaced, under another name."""
    body = text[kernel.start : kernel.end]
    tokens = scan.tokens(body)
    first = next(token.start for token in tokens if token.start >= body.index(kernel.template) + len(kernel.template))
    pieces, at = [], first
    for before, token in zip((None, *tokens), tokens, strict=False):
        other = name if token.text == kernel.name else values.get(token.text)
        if token.start < first or other is None or (before is not None and before.text in (".", "->", "::")):
            continue
        pieces += [body[at : token.start], f"({other})" if other.startswith("-") else other]
        at = token.end
    return "".join([*pieces, body[at:]])
