"""A baseline whose results have the original's strides: what is built in place of one that was refused for theirs alone.

A compiler that returns a view of a padded buffer (torch.compile, of a product whose rows it has padded) is no slower for that, and a user who needs
the original's form copies the result. So does the baseline, within what is timed. The copy stands behind the compiled call, not within: there the
compiler has the strides that it expects of the original, which are those that it missed, and leaves the copy out.
"""

from __future__ import annotations

from dataclasses import replace

from warpwright.base import Candidate, Verdict
from warpwright.tasks import training

CHECK = "layout"
"""The check of the verifier that refuses an output's strides."""

_TEXT = '''

# --- its results in the strides of the original's --------------------------------------------------------------------------------------

import copy as _copy_of_strides
import functools as _functools_of_strides

import torch


class _Strides:
    """Has a program's results lie in memory as the original's: which gives the first call's answer, so that its strides are known."""

    def __init__(self):
        self.known = None  # place and shape of a result -> its strides, and whether a copy may have them

    def note(self, result):
        """Return the original's own result, its strides noted."""
        self.known = {}
        self._each(result, self._noted, [0], set())
        return result

    def bring(self, result):
        """Return a result, each tensor that is neither contiguous nor in the original's strides as a copy that is."""
        return self._brought(0, result) if type(result) is torch.Tensor else self._each(result, self._brought, [0], set())

    def _each(self, item, visit, places, seen):
        """Return an item with what `visit` gives for each tensor in it; the item itself where that is the same tensors."""
        if isinstance(item, torch.Tensor):
            places[0] += 1
            return visit(places[0] - 1, item)
        leaves, form = torch.utils._pytree.tree_flatten(item)
        if len(leaves) != 1 or leaves[0] is not item:
            visited = [self._each(leaf, visit, places, seen) for leaf in leaves]
            return item if all(one is leaf for one, leaf in zip(visited, leaves)) else torch.utils._pytree.tree_unflatten(visited, form)
        if not hasattr(item, "__dict__") or isinstance(item, (type, torch.nn.Module)) or id(item) in seen:
            return item
        seen.add(id(item))
        held = {name: self._each(one, visit, places, seen) for name, one in vars(item).items()}
        if all(held[name] is one for name, one in vars(item).items()):
            return item
        made = _copy_of_strides.copy(item)
        vars(made).update(held)
        return made

    def _noted(self, at, leaf):
        if _may_be_off(leaf):
            self.known[at, leaf.shape] = leaf.stride(), _fills(leaf)
        return leaf

    def _brought(self, at, leaf):
        if not _may_be_off(leaf):
            return leaf
        wanted, fills = self.known.get((at, leaf.shape), (None, False))
        if wanted is not None and all(one == other for one, other, size in zip(leaf.stride(), wanted, leaf.shape) if size > 1):
            return leaf
        if not fills:  # elements of the original's share memory or leave gaps: what a contiguous tensor stands for as well
            return leaf.contiguous()
        return torch.empty_strided(leaf.shape, wanted, dtype=leaf.dtype, device=leaf.device).copy_(leaf)


def _may_be_off(leaf):
    """Whether a result is a tensor whose strides say anything, and not contiguous."""
    return leaf.layout is torch.strided and not leaf.is_nested and not leaf.is_contiguous()


def _fills(leaf):
    """Whether a tensor's elements lie side by side in some order: only of such a one does torch keep the strides."""
    return torch.empty_like(leaf, device="meta").stride() == leaf.stride()


_STRIDES = _Strides()


class ModelNew(ModelNew):
    """The same with its results in the original's strides; the first call of all is the original's."""

    @_functools_of_strides.wraps(Model.forward)
    def forward(self, *args, **kwargs):
        if torch.compiler.is_compiling() or torch.jit.is_tracing():
            return super().forward(*args, **kwargs)
        if _STRIDES.known is None:
            return _STRIDES.note(Model.forward(self, *args, **kwargs))
        return _STRIDES.bring(super().forward(*args, **kwargs))
'''

_OF_STEP = '''

_STRIDES_OF_STEP = _Strides()


class StepNew(StepNew):
    """The same with the gradients in the original's strides, too."""

    def forward(self, *given):
        if _STRIDES_OF_STEP.known is None:
            forward = lambda *inputs: _STRIDES.note(Model.forward(self, *inputs))
            return _STRIDES_OF_STEP.note(_step(self, forward, given[:-1], given[-1]))
        return _STRIDES_OF_STEP.bring(super().forward(*given))
'''


def rebuilt(baseline: Candidate) -> Candidate:
    """Return the baseline that is built in place of one which was refused for its results' strides."""
    source, [(name, text)] = baseline.source, baseline.source.files
    step = source.entry == training.STEP_NEW
    before = text.removesuffix(training.NEW_TEXT) if step else text
    text = f"{before}{_TEXT}{training.NEW_TEXT + _OF_STEP if step else ''}"
    return replace(baseline, source=replace(source, files=((name, text),)), parent=baseline.key)


def refused_for_strides(verdict: Verdict | None) -> bool:
    """Was a baseline refused for its results' strides? They are looked at before its values: of these nothing is known."""
    return verdict is not None and verdict.check == CHECK
