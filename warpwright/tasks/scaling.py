"""Smaller sizes for a task file, so that a program written for a large GPU runs in milliseconds on a CPU.

`scale` (above 0, at most 1) is a share of full-size work, not a factor on every dimension: sizes are halved, one kind at a time, until
the estimated work of one eager call is at most `scale * FULL_SECONDS` on a nominal two-core machine. A task that is already that small is
left as it is, and 1.0 always means "as written". `0.001` gives calls of about 5 to 20 ms on two cores.

Only integer literals of the module level and of get_inputs / get_init_inputs are changed, in place, so line numbers stay. Every step is
tried on the meta device and taken back if the program no longer runs; kernel sizes, strides, paddings, axes and head counts are never
touched, and a group count shrinks only together with the features that it divides.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from warpwright.base import Task, digest
from warpwright.errors import TaskError
from warpwright.tasks.reference import Reference, call, run_text
from warpwright.tasks.sources import syntax_tree

FULL_SECONDS = 20.0
"""Full-size work on the nominal machine: about the largest KernelBench level 1 and 2 tasks. Chosen, not measured."""

FLOPS_PER_SECOND = 5e10
BYTES_PER_SECOND = 5e9
"""The nominal machine: two cores of a server CPU, fp32."""

POOL_TAP_SECONDS = 1e-9
"""One window element of a pooling operator, which reads far more often than it reads new bytes (measured: 1 to 4 ns on one core)."""

Role = Literal["batch", "spatial", "feature", "other", "group"]

_ROLES: tuple[tuple[str, Role | None], ...] = (
    (r"kernel|stride|pad|dilation|pool|head|multiplier|value|scal|eps|seed|num_layers|bias|factor|divi|^dim$|_dim$|axis", None),
    (r"group", "group"),
    (r"^(b|bs|n?batch(_?size)?|num_samples)$", "batch"),
    (r"^[dhwt]$|height|width|depth|length|seq|image|spatial|^dim\d", "spatial"),
    (r"channel|feature|hidden|input_size|output_size|in_size|out_size|embed|classes|d_model", "feature"),
)

_SMALLEST = 8
"""Literals below this are never sizes worth shrinking."""

_LADDER: tuple[tuple[Role, int], ...] = (
    ("batch", 64),
    ("spatial", 32),
    ("other", 128),
    ("feature", 512),
    ("batch", 16),
    ("spatial", 16),
    ("feature", 128),
    ("batch", 4),
    ("feature", 32),
    ("other", 16),
    ("spatial", 8),
    ("batch", 2),
)
"""Which kind shrinks first, and how far before the next kind has its turn."""


@dataclass(frozen=True)
class Site:
    """One integer literal (or product of literals) of the text."""

    name: str
    role: Role
    line: int
    """Counted from 0."""
    start: int
    end: int
    """Bytes of the line, end excluded."""
    value: int


@dataclass(frozen=True)
class Scaled:
    """A task's text at smaller sizes."""

    text: str
    changes: Mapping[str, tuple[int, int]]
    """Name of each changed size -> value before and after."""
    seconds: float
    """Estimated seconds of one call on the nominal machine."""
    reached: bool
    """Whether that is within the target; if not, the ladder ended first."""


@functools.lru_cache(maxsize=16)
def scale_text(text: str, scale: float, path: str = "<task>") -> Scaled:
    """Return `text` with sizes small enough for `scale`; raise TaskError when the program does not run on the meta device at all."""
    if not 0 < scale <= 1:
        raise TaskError(f"expected a scale above 0 and at most 1, saw {scale}", "write --scale 0.001 for a CPU; 1 keeps the sizes as written")
    try:
        seconds = estimate_seconds(text, path)
    except TaskError as error:
        raise TaskError(f"{path} cannot be scaled, because it does not run on the meta device: {error}", "leave --scale out") from error
    target = scale * FULL_SECONDS
    sites = find_sites(text)
    values = {site: site.value for site in sites}
    for role, smallest in _LADDER:
        while seconds > target:
            step = _shrink(text, path, values, role, smallest, seconds)
            if step is None:
                break
            values, seconds = step
    changes = {_label(site): (site.value, values[site]) for site in sites if values[site] != site.value}
    return Scaled(substitute(text, values), changes, seconds, seconds <= target)


def _label(site: Site) -> str:
    return f"{site.name}@{site.line + 1}:{site.start}"


def _shrink(text: str, path: str, values: Mapping[Site, int], role: Role, smallest: int, before: float) -> tuple[dict[Site, int], float] | None:
    """Return `values` with the largest sizes of `role` halved, and the new estimate; None when nothing of it can shrink further."""
    sizes = sorted({value for site, value in values.items() if site.role == role and value // 2 >= smallest}, reverse=True)
    for size in sizes:
        for changed in _proposals(values, role, size):
            try:
                seconds = estimate_seconds(substitute(text, changed), path)
            except TaskError:
                continue  # not a valid program at these sizes: the next proposal may be
            if seconds < before:
                return changed, seconds
    return None


def _proposals(values: Mapping[Site, int], role: Role, size: int) -> Iterator[dict[Site, int]]:
    """Yield ways of halving the sizes equal to `size`: with their groups, alone, with every equal literal, with all but the batch."""
    same_role = {site for site, value in values.items() if site.role == role and value == size}
    if role == "feature":
        groups = {site for site, value in values.items() if site.role == "group" and value >= 2 * _SMALLEST}
        features = {site for site, value in values.items() if site.role == role and value >= size}
        if groups:
            yield _halve(values, features | groups)
    yield _halve(values, same_role)
    yield _halve(values, {site for site, value in values.items() if value == size and site.role != "group"})
    # A LayerNorm over the last axis ties a width to a channel count through the stride: halve the lot.
    yield _halve(values, {site for site, value in values.items() if site.role in {"spatial", "feature", "other"} and value >= 2 * _SMALLEST})


def _halve(values: Mapping[Site, int], chosen: set[Site]) -> dict[Site, int]:
    return {site: value // 2 if site in chosen else value for site, value in values.items()}


# --- the literals ------------------------------------------------------------------------------------------------------------------


def find_sites(text: str) -> list[Site]:
    """Return the integer literals of `text` that are sizes, in the order of the text."""
    tree = syntax_tree(text)
    sites: list[Site] = []
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets[:1]:
                sites += _assigned(target, node.value)
        elif isinstance(node, ast.FunctionDef) and node.name in {"get_inputs", "get_init_inputs"}:
            sites += _in_function(node)
    return sorted(set(sites), key=lambda site: (site.line, site.start))


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[Site]:
    """Yield the sites of `name = literal`, `a, b = literal, literal` and `name = (literal, ...)`."""
    if isinstance(value, ast.Tuple | ast.List):
        names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target] * len(value.elts)
        for name, element in zip(names, value.elts, strict=False):
            yield from _assigned(name, element)
    elif isinstance(target, ast.Name):
        yield from _site(target.id, value)


def _in_function(function: ast.FunctionDef) -> Iterator[Site]:
    """Yield literals among the arguments of calls: `torch.rand(16, 3, 224, 224)`; nested products are read as one literal."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            yield from _assigned(node.targets[0], node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"rand", "randn", "zeros", "ones", "empty"}:
            for position, argument in enumerate(node.args):
                yield from _site("batch" if position == 0 and len(node.args) > 1 else f"{node.func.attr}_{position}", argument)


def _site(name: str, node: ast.expr) -> Iterator[Site]:
    value = _integer(node)
    role = role_of(name, value or 0)
    if value is None or role is None or value < _SMALLEST or node.end_lineno != node.lineno or node.end_col_offset is None:
        return
    yield Site(name, role, node.lineno - 1, node.col_offset, node.end_col_offset, value)


def _integer(node: ast.expr) -> int | None:
    """Return the value of an integer literal or a product, sum or power of literals."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Add | ast.Pow | ast.LShift):
        left, right = _integer(node.left), _integer(node.right)
        if left is None or right is None:
            return None
        return int(eval(compile(ast.Expression(node), "<size>", "eval"), {"__builtins__": {}}))
    return None


def role_of(name: str, value: int) -> Role | None:
    """Return what kind of size a name stands for, or None for what must not change."""
    if value >= 512 and re.fullmatch(r"(?i)dim|\w+_dim", name):
        return "feature"
    for pattern, role in _ROLES:
        if re.search(pattern, name, re.I):
            return role
    return "other"


def substitute(text: str, values: Mapping[Site, int]) -> str:
    """Return `text` with each site's literal replaced by its value."""
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for site in sorted(values, key=lambda each: (each.line, each.start), reverse=True):
        if values[site] != site.value:
            line = lines[site.line]
            lines[site.line] = line[: site.start] + str(values[site]).encode() + line[site.end :]
    return b"".join(lines).decode()


# --- the estimate ------------------------------------------------------------------------------------------------------------------


def estimate_seconds(text: str, path: str = "<task>") -> float:
    """Return the nominal machine's seconds for one eager call: flops plus the bytes that every operator reads and writes.

    An operator's bytes are counted once each way, views are free: an estimate for choosing sizes, not the bound of roofline.py.
    """
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    task = Task(name="scaling", path=path)
    namespace = run_text(text, path, digest("scaling", text))
    sys.modules.pop(namespace.__name__, None)  # one of about twenty tries
    reference = Reference(task, text, namespace, list(call(path, "get_init_inputs()", namespace.get_init_inputs)))
    model, inputs = reference.make_meta_model(), reference.make_inputs(0, "meta")
    traffic = _traffic_mode()
    with torch.no_grad(), torch.device("meta"), FlopCounterMode(display=False) as counter, traffic:
        call(path, "forward", lambda: model(*inputs))
    return float(counter.get_total_flops() / FLOPS_PER_SECOND + traffic.bytes / BYTES_PER_SECOND + traffic.taps * POOL_TAP_SECONDS)


def _traffic_mode() -> Any:
    """Return a mode that adds up the bytes that operators read and write, and the window elements that pooling visits."""
    import math

    import torch
    from torch.utils._pytree import tree_leaves

    from warpwright.tasks.mode import Mode

    class Traffic(Mode):  # type: ignore[no-untyped-call]
        bytes = 0
        taps = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if not func.is_view:
                tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)]
                self.bytes += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
                if re.search(r"(max|avg)_pool\dd", func.__name__) and "adaptive" not in func.__name__:
                    self.taps += tensors[-1].numel() * math.prod(args[1])
            return result

    return Traffic()  # type: ignore[no-untyped-call]
