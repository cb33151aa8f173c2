"""Differentiate: the gradients of a training step as calls of the graph, so that they are rewritten and fused with the forward."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from warpwright.base import Action
from warpwright.domains.graph.capture.training import differentiate
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.techniques.kernels.attention import in_step, of_step
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits


@dataclass(frozen=True)
class Differentiate:
    """y = f(x), differentiated by autograd  ->  y, kept = forward(x); dx = backward(kept, dy), each a function of plain calls.

    `norms`: whether softmax and norms are written out, so that they can join kernels with what is around them. `again`: whether the backward
    computes element-wise functions anew, so that their results are neither written nor read. `attention`: attention is one call forward and one back,
    which makes its scores again (on a GPU).
    """

    target: str
    name: str = "differentiate"
    forms: tuple[tuple[bool, bool], ...] = ((True, True), (False, True), (True, False), (False, False))

    @property
    def traits(self) -> Traits:
        """Alone it only saves what autograd costs the host: kernels are what it is for. Of autograd's backward the estimate knows nothing."""
        kernels = fuse_cuda(1, DEFAULT) if self.target == "cuda" else Action("fuse_cpp", params=(("calls", 1),))
        return Traits("S", tried_first=True, estimated=False, best_with=(kernels,))

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield the forms for a training step that is not differentiated yet."""
        if ir.training is None or ir.training.tangents or ir.unreadable or ir.schedule:
            return
        if self.target == "cuda" and of_step(ir):
            for norms, again in sorted(self.forms, key=lambda form: form[1]):  # where attention is one call there may be nothing to compute again
                yield Action(self.name, params=(("norms", norms), ("again", again), ("attention", True)))
        for norms, again in self.forms:
            yield Action(self.name, params=(("norms", norms), ("again", again)))

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the graph with its gradients."""
        if action not in list(self.sites(ir)):
            raise NotApplicable(f"{action} is not legal here", "take the action from sites(ir)")
        params = dict(action.params)
        ir = in_step(ir) if params.get("attention") else ir
        return differentiate(ir, self.target, bool(params["norms"]), bool(params["again"]))
