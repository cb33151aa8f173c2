"""What may be done to a relational layer, and the file that a choice of it gives.

    compile              the original's loops     ->  the front-end program, traced and run by the emitter of the device
    compact              a value for each edge    ->  a value for each pair that it depends on
    reorder              products as written      ->  products in the order of least cost, aggregation first where it pays
    scatter(weight=w)    the default cost of adding to rows in memory -> another: favours aggregating first (low) or messages first (high)
    kernel(...)          the default schedule of kernels              -> other rows, warps and edges under way (GPU)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from warpwright.base import Action, Candidate, Source
from warpwright.domains.rgnn.emit.triton.tuning import Tuning
from warpwright.domains.rgnn.plan import Options
from warpwright.domains.rgnn.work import Work, task_text
from warpwright.errors import NotApplicable
from warpwright.space import Space, Traits


@dataclass(frozen=True)
class Choice:
    """The IR: a layer, and how it is compiled; `options` None: not at all."""

    work: Work
    target: str = "cpu"
    options: Options | None = None


@dataclass(frozen=True)
class Compile:
    """original -> the front-end program, without reordering and compaction."""

    name = "compile"
    traits = Traits("E", enabling=True)

    def sites(self, ir: Choice) -> Iterator[Action]:
        """Yield the action where the layer is not compiled."""
        if ir.options is None:
            yield Action(self.name)

    def apply(self, ir: Choice, action: Action) -> Choice:
        """Return the layer compiled."""
        if ir.options is not None:
            raise NotApplicable("expected a layer that is not compiled yet")
        return replace(ir, options=Options(reorder=False, compact=False))


@dataclass(frozen=True)
class Flag:
    """One pass off -> on."""

    name: str
    traits: Traits

    def sites(self, ir: Choice) -> Iterator[Action]:
        """Yield the action where the pass is off."""
        if ir.options is not None and not getattr(ir.options, self.name):
            yield Action(self.name)

    def apply(self, ir: Choice, action: Action) -> Choice:
        """Return the layer with the pass on."""
        if ir.options is None or getattr(ir.options, self.name):
            raise NotApplicable(f"expected a compiled layer without {self.name}")
        on: dict[str, Any] = {self.name: True}
        return replace(ir, options=replace(ir.options, **on))


@dataclass(frozen=True)
class Scatter:
    """One cost of the ordering -> another."""

    name = "scatter"
    traits = Traits("S")
    weights = (0.5, 6.0)

    def sites(self, ir: Choice) -> Iterator[Action]:
        """Yield other costs where products are reordered."""
        if ir.options is not None and ir.options.reorder:
            for weight in self.weights:
                if weight != ir.options.scatter:
                    yield Action(self.name, params=(("weight", weight),))

    def apply(self, ir: Choice, action: Action) -> Choice:
        """Return the layer ordered at that cost."""
        if action not in self.sites(ir) or ir.options is None:
            raise NotApplicable(f"expected a reordered layer and a weight out of {self.weights}, saw {action}")
        return replace(ir, options=replace(ir.options, scatter=float(dict(action.params)["weight"])))


@dataclass(frozen=True)
class Schedule:
    """One schedule of the kernels -> another."""

    name = "kernel"
    traits = Traits("S")
    tunings = (Tuning(32, 4, 4), Tuning(32, 4, 2), Tuning(64, 8, 4), Tuning(64, 4, 2))

    def sites(self, ir: Choice) -> Iterator[Action]:
        """Yield other schedules on a GPU."""
        if ir.options is not None and ir.target == "cuda":
            for tuning in self.tunings:
                if tuning != ir.options.tuning:
                    yield Action(self.name, params=(("step", tuning.step), ("warps", tuning.warps), ("unroll", tuning.unroll)))

    def apply(self, ir: Choice, action: Action) -> Choice:
        """Return the layer with that schedule."""
        if action not in self.sites(ir) or ir.options is None:
            raise NotApplicable(f"expected a compiled layer on a GPU and one of {self.tunings}, saw {action}")
        params = dict(action.params)
        tuning = Tuning(int(params["step"]), int(params["warps"]), int(params["unroll"]))
        return replace(ir, options=replace(ir.options, tuning=tuning))


TECHNIQUES = (Compile(), Flag("compact", Traits("E", settled=True)), Flag("reorder", Traits("E", settled=True)), Scatter(), Schedule())


def space(work: Work, target: str) -> Space[Choice]:
    """Return the search space of a layer."""
    return Space(Choice(work, target), TECHNIQUES, lower)


def lower(ir: Choice, actions: Sequence[Action]) -> Candidate:
    """Return the file: the original, and a `ModelNew` that runs the compiled layer. It imports warpwright."""
    recipe = "".join(f"#     {action}\n" for action in actions) or "#     none\n"
    head = f"# a relational layer: the original, then ModelNew, which computes the same\n# recipe:\n{recipe}"
    body = "class ModelNew(Model):\n    pass\n"
    if ir.options is not None:
        body = _NEW.replace("@OPTIONS", repr(ir.options)).replace("@CALL", _CALLS[ir.work.model])
    return Candidate(Source("python", (("optimized.py", f"{head}{task_text(ir.work)}\n\n{body}"),)), ir.target, tuple(actions), proposer="rgnn")


_NEW = '''from warpwright.domains.rgnn import models
from warpwright.domains.rgnn.emit.triton.tuning import Tuning
from warpwright.domains.rgnn.index import forget
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.nn.common import typed_index
from warpwright.domains.rgnn.plan import Options, run

OPTIONS = @OPTIONS


KINDS = {}


def kinds(device):
    """The relation of each edge."""
    if device not in KINDS:
        KINDS[device] = GRAPH.edge_type.to(device)
    return KINDS[device]


class ModelNew(Model):
    """Model with its layer compiled; the graph's index is made at the first call and again when the edges change."""

    def refresh(self):
        """Forget the index, after writes that leave no trace in a tensor's version."""
        forget([self.edge_index])

    def forward(self, x):
        if x.dim() != 2 or not x.is_floating_point() or x.dtype != next(self.parameters()).dtype:
            return super().forward(x)
        graph = typed_index(self.edge_index, kinds(x.device), len(x), len(x), len(STARTS) - 1)
@CALL
'''

_CALLS = {
    "rgcn": """        out = run(models.rgcn, graph, {"x": (Domain.NODE, x), "weight": (Domain.ETYPE, self.weight)}, OPTIONS)
        return out + torch.addmm(self.bias, x, self.root)""",
    "rgat": """        given = {"x": (Domain.NODE, x), "weight": (Domain.ETYPE, self.weight),
                 "query": (Domain.ONE, self.query), "key": (Domain.ONE, self.key)}
        return run(models.rgat_single, graph, given, OPTIONS)""",
    "hgt": """        key, query, value = (part.contiguous() for part in (x @ self.project).tensor_split(3, 1))
        given = {"key": (Domain.NODE, key), "query": (Domain.NODE, query), "value": (Domain.NODE, value),
                 "attention": (Domain.ETYPE, self.attention), "message": (Domain.ETYPE, self.message), "prior": (Domain.ETYPE, self.prior)}
        return run(models.hgt_single, graph, given, OPTIONS)""",
}
