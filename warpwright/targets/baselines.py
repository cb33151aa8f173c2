"""The baseline programs of a task: its own text and a class ModelNew that runs the original in one of the ways a user would try first.

There is no `vendor` baseline. Where one library call does a task's work, eager already makes it, or the graph domain's rewrites propose it as
a candidate that the verifier sees; a table of patterns here would be a second rewriter that nothing checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from warpwright.base import Source
from warpwright.errors import UsageError


@dataclass(frozen=True)
class Baseline:
    """One way to run the original."""

    text: str
    """The class ModelNew(Model); `{mode}` is the compile mode."""
    modes: Mapping[str, str]
    """Compile mode by kind of device. A kind that is absent has no such baseline."""


_EAGER = '''
class ModelNew(Model):
    """The original, as it is."""
'''

_EAGER_TF32 = '''
import torch as _torch


class ModelNew(Model):
    """The original with TF32 matrix products and convolutions; the flags are as they were after each call."""

    def forward(self, *args, **kwargs):
        matmul, cudnn = _torch.backends.cuda.matmul, _torch.backends.cudnn
        before = matmul.allow_tf32, cudnn.allow_tf32
        matmul.allow_tf32 = cudnn.allow_tf32 = True
        try:
            return super().forward(*args, **kwargs)
        finally:
            matmul.allow_tf32, cudnn.allow_tf32 = before
'''

_COMPILE = '''
import torch as _torch


class ModelNew(Model):
    """The original under torch.compile, compiled at the first call."""

    def forward(self, *args, **kwargs):
        compiled = self.__dict__.get("_compiled")
        if compiled is None:
            compiled = self.__dict__["_compiled"] = _torch.compile(super().forward, mode={mode})
        return compiled(*args, **kwargs)
'''

_CUDA_GRAPH = '''
import torch as _torch
from torch.utils import _pytree


class ModelNew(Model):
    """The original recorded as a CUDA graph at the first call; each call copies its inputs in, replays, and returns copies of the outputs.

    It is recorded anew when an input's shape, type or strides, a value that is no tensor, or the address of a parameter or buffer changes.
    """

    def forward(self, *args, **kwargs):
        leaves, form = _pytree.tree_flatten((args, kwargs))
        key = (form, self.training, *map(_form_of, leaves), *(t.data_ptr() for t in (*self.parameters(), *self.buffers())))
        recorded = self.__dict__.get("_recorded")
        if recorded is None or recorded[0] != key:
            recorded = self.__dict__["_recorded"] = (key, *self._record(leaves, form))
        _, graph, places, outputs, changed = recorded
        for place, leaf in zip(places, leaves):
            if isinstance(leaf, _torch.Tensor):
                place.copy_(leaf)
        graph.replay()
        for index in changed:
            leaves[index].copy_(places[index])
        return _pytree.tree_map_only(_torch.Tensor, _torch.clone, outputs)

    def _record(self, leaves, form):
        """Return the graph, the places of its inputs, its outputs, and which inputs it writes."""
        places = [_torch.empty_like(leaf).copy_(leaf) if isinstance(leaf, _torch.Tensor) else leaf for leaf in leaves]
        state = [(buffer, buffer.clone()) for buffer in self.buffers()]
        stream = _torch.cuda.Stream()
        stream.wait_stream(_torch.cuda.current_stream())
        with _torch.cuda.stream(stream):
            for _ in range(3):
                self._original(places, form)
        _torch.cuda.current_stream().wait_stream(stream)
        versions = [place._version if isinstance(place, _torch.Tensor) else 0 for place in places]
        graph = _torch.cuda.CUDAGraph()
        with _torch.cuda.graph(graph):
            outputs = self._original(places, form)
        changed = [i for i, place in enumerate(places) if isinstance(place, _torch.Tensor) and place._version != versions[i]]
        for buffer, value in state:  # the warm-up calls may have moved running statistics
            buffer.copy_(value)
        return graph, places, outputs, changed

    def _original(self, leaves, form):
        args, kwargs = _pytree.tree_unflatten(leaves, form)
        return super().forward(*args, **kwargs)


def _form_of(leaf):
    return (leaf.shape, leaf.dtype, leaf.stride(), leaf.device) if isinstance(leaf, _torch.Tensor) else leaf
'''

BASELINES: Mapping[str, Baseline] = {
    "eager": Baseline(_EAGER, {"cpu": "", "cuda": ""}),
    "eager_tf32": Baseline(_EAGER_TF32, {"cuda": ""}),
    "compile": Baseline(_COMPILE, {"cpu": "None", "cuda": "None"}),
    # On CUDA the mode that adds CUDA graphs would hand out outputs that the next call overwrites.
    "compile_max_autotune": Baseline(_COMPILE, {"cpu": '"max-autotune"', "cuda": '"max-autotune-no-cudagraphs"'}),
    "cuda_graph": Baseline(_CUDA_GRAPH, {"cuda": ""}),
}


def names_for(device: str) -> tuple[str, ...]:
    """Return the names of the baselines that exist on a device such as cpu or cuda:0."""
    return tuple(name for name, baseline in BASELINES.items() if device.partition(":")[0] in baseline.modes)


def baselines(task_source_text: str, device: str, names: Iterable[str] | None = None) -> dict[str, Source]:
    """Return the baseline programs by name: those of `names`, in their order, or all that exist on `device`.

    `task_source_text` is the task in KernelBench form (`taskfile.source_text`).
    """
    known = names_for(device)
    chosen = known if names is None else tuple(names)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise UsageError(f"there is no baseline {', '.join(map(repr, unknown))} on {device}", f"known there: {', '.join(known)}")
    return {name: _source(task_source_text, device, BASELINES[name]) for name in chosen}


def _source(task_source_text: str, device: str, baseline: Baseline) -> Source:
    text = baseline.text.replace("{mode}", baseline.modes[device.partition(":")[0]])
    return Source("python", (("baseline.py", f"{task_source_text.rstrip()}\n\n{text}"),), "ModelNew")
