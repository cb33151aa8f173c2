"""What a program offers and how it is launched: kernels and template instances for callers outside, block shapes that are known beforehand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.scan import Kernel
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text import instantiations
from warpwright.domains.transpile.ir import Shape
from warpwright.errors import UsageError

Shapes = tuple[Shape, ...]

_BUILTIN = frozenset(
    ["float", "double", "int", "unsigned", "long", "short", "char", "bool", "half", "__half", "const", "true", "false", "float2", "float4", "int64_t",
     "int32_t", "uint8_t"]
)  # fmt: skip
"""Names that mean the same at file scope."""


def exported(source: Source, instances: Sequence[str]) -> dict[str, int]:
    """Return what can be launched from outside: plain kernels, and instances of template kernels that are asked for or launched."""
    known = source.kernels
    defined = [k for k in known if k.defined]
    plain = {k.name: k for k in defined if not k.template}
    templates = {k.name: k for k in defined if k.template}
    overloaded = {k.name for k in known for other in known if k.name == other.name and len(k.parameters) != len(other.parameters)}
    names = [n for n in plain if sum(k.name == n for k in defined) == 1 and n not in overloaded]
    for site in source.launches:
        base = site.callee.rpartition("::")[2]
        if base in templates and site.template_arguments and _closed(site.template_arguments) and _whole(templates[base], site.template_arguments):
            names.append(f"{base}<{' '.join(site.template_arguments.split())}>")
    for made in instantiations.found(source):
        if made.name in templates and made.arguments and _closed(made.arguments) and _whole(templates[made.name], made.arguments):
            names.append(f"{made.name}<{' '.join(made.arguments.split())}>")
    for one in instances:
        base = one.partition("<")[0].strip()
        if base not in templates:
            raise UsageError(f"expected an instance of a template kernel ({', '.join(templates) or 'there is none'}), saw {one!r}")
        names.append(one)
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _whole(kernel: Kernel, arguments: str) -> bool:
    """Say whether template arguments name an instance: that none is left to be deduced from the launch."""
    inside = kernel.template.partition("<")[2].rpartition(">")[0]
    wanted = [part for part in scan.split_commas(inside) if "..." not in part and not re.search(r"(?<![<>=!])=(?!=)", part)]
    return len(scan.split_commas(arguments)) >= len(wanted)


def _closed(arguments: str) -> bool:
    """Say whether template arguments mean the same at file scope: numbers and builtin types."""
    return all(token.kind in ("number", "mark") or token.text in _BUILTIN for token in scan.tokens(arguments))


def block_shapes(source: Source, kernel: Kernel, wanted: Mapping[str, Shape]) -> tuple[Shapes, Shapes]:
    """Return the block shapes that a kernel is launched with, as wanted or as numbers in the text, and those with the launch bound, which is the
    largest shape: these get a version of their own."""
    shapes = [wanted[kernel.name]] if kernel.name in wanted else []
    for site in source.launches:
        if site.callee.rpartition("::")[2] == kernel.name:
            parts = scan.split_commas(site.configuration)
            numbers = re.fullmatch(r"(?:dim3\s*[({])?\s*(\d+)\s*(?:,\s*(\d+)\s*)?(?:,\s*(\d+)\s*)?[)}]?", parts[1]) if len(parts) > 1 else None
            if numbers:
                shapes.append((int(numbers[1]), int(numbers[2] or 1), int(numbers[3] or 1)))
    bound = [(int(kernel.bounds), 1, 1)] if kernel.bounds.strip().isdigit() else []
    return _offered(shapes), _offered([*shapes, *bound])


def _offered(shapes: Sequence[Shape]) -> Shapes:
    """Return the first shapes that a launch may have."""
    return tuple(s for s in dict.fromkeys(shapes) if 0 < s[0] * s[1] * s[2] <= 1024)[:4]
