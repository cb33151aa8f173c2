"""Which regions name a variable, and which uniform variables have to live outside of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.regions import (  # fmt: skip
    Branch,
    CollectiveNode,
    Loop,
    Masked,
    MaskedLoop,
    Node,
    Region,
    Single,
    WarpGroup,
    changed,
    children,
    node_stmts,
    used,
    walk,
)
from warpwright.domains.transpile.analysis.uniform import Facts
from warpwright.domains.transpile.errors import Demote
from warpwright.domains.transpile.ir import Evaluate, Expr, Var


def touches(nodes: Sequence[Node]) -> tuple[dict[int, set[int]], dict[int, set[int]], set[int]]:
    """Number the regions. Return, for each key, the regions and the groups that name it, and the keys in control or in singles."""
    regions: dict[int, set[int]] = {}
    groups: dict[int, set[int]] = {}
    control: set[int] = set()
    numbers = iter(range(1, 1_000_000))

    def visit(inner: Sequence[Node], group: int, masks: tuple[Expr, ...]) -> None:
        for node in inner:
            stmts = node_stmts(node)
            if isinstance(node, Region):
                node.number = next(numbers)
                keys = used(stmts) | used([Evaluate(m) for m in masks])
                for key in keys:
                    regions.setdefault(key, set()).add(node.number)
                    groups.setdefault(key, set()).add(group)
            elif isinstance(node, MaskedLoop):
                node.number = next(numbers)
                for key in used([Evaluate(m) for m in (node.cond, *masks)]) | {node.flag.key}:
                    regions.setdefault(key, set()).add(node.number)
                    groups.setdefault(key, set()).add(group)
            elif isinstance(node, CollectiveNode):
                number = next(numbers)
                for key in used([Evaluate(m) for m in masks]) | {node.stmt.offered.key}:
                    regions.setdefault(key, set()).add(number)
                    groups.setdefault(key, set()).add(group)
            elif isinstance(node, Single | Loop | Branch):
                control.update(used(stmts))
            mine = masks
            if isinstance(node, Masked):
                mine = (*masks, node.cond)
            elif isinstance(node, MaskedLoop):
                mine = (*masks, ir.name_of(node.flag))
            visit(children(node), node.number if isinstance(node, WarpGroup) else group, mine)

    visit(nodes, 0, ())
    return regions, groups, control


def needed_scalars(nodes: Sequence[Node], facts: Facts, variables: Mapping[int, Var]) -> set[int]:
    """Return the uniform variables that more than one region, or shared control, names."""
    regions, _, control = touches(nodes)
    needed = set()
    for key, var in variables.items():
        if var.space != "local" or key in facts.varying or var.dims:
            continue
        if key in control or len(regions.get(key, ())) > 1:
            needed.add(key)
    return needed


def check_groups(nodes: Sequence[Node], scalars: set[int], facts: Facts, variables: Mapping[int, Var]) -> None:
    """Demote scalars that a warp group changes but that others see: each warp would change them again."""
    inside: dict[int, set[int]] = {}
    changers: dict[int, set[int]] = {}
    for node, group in walk(nodes):
        for key in used(node_stmts(node)):
            inside.setdefault(key, set()).add(group)
        if isinstance(node, Single | Loop):
            for stmt in node_stmts(node):
                for key in changed(stmt):
                    changers.setdefault(key, set()).add(group)
    wrong = {k for k in scalars if any(g != 0 for g in changers.get(k, ())) and len(inside.get(k, ())) > 1}
    if wrong:
        raise Demote(wrong)
