"""The graph domain's IR: a frozen wrapper round a torch.fx graph of aten operators, and the one way to change it.

`nodes` looks at one node, `effects` at what calls do besides, `graph` has the wrapper, `rewriting` changes it, `interpret` runs it.

A node of `ir.graph` is a placeholder, a call of an aten overload (or of `operator.getitem` on one with several results),
or the output. Every node that stands for a tensor has `node.meta["val"]`, a meta tensor of its shape, dtype and strides;
two values share storage exactly when their meta tensors do. Placeholders carry `node.meta["role"]`: input, state or
constant. Intermediate results are never written in place; only state is (`add_` on BatchNorm's counter, BatchNorm's
running statistics), and those writes are part of what a rewrite keeps.

Changing it:

    e = edit(ir)
    old = e.node("linear")
    new = e.before(old).call(aten.sum.dim_IntList, old.args[0], [1], True)
    e.replace(old, new)
    return e.finish(assume="...")
"""

from __future__ import annotations

from warpwright.domains.graph.ir.effects import (
    foldable,
    has_effect,
    is_parameter_only,
    is_random,
    mutated,
    parameter_only,
    remove_dead,
    sort,
    written,
)  # fmt: skip
from warpwright.domains.graph.ir.graph import GraphIR, Training, copy, find, placeholders, text, without_views
from warpwright.domains.graph.ir.interpret import run
from warpwright.domains.graph.ir.nodes import ancestors, argument, aten, dtype, is_op, is_tensor, only_user, role, shape, type_text, users, value
from warpwright.domains.graph.ir.rewriting import Edit, Inserter, edit

__all__ = [
    "Edit", "GraphIR", "Inserter", "Training", "ancestors", "argument", "aten", "copy", "dtype", "edit", "find", "foldable", "has_effect",
    "is_op", "is_parameter_only", "is_random", "is_tensor", "mutated", "only_user", "parameter_only", "placeholders", "remove_dead", "role",
    "run", "shape", "sort", "text", "type_text", "users", "value", "without_views", "written",
]  # fmt: skip
