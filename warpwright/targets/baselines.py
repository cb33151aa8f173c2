"""The baseline programs of a task: its own text and a class ModelNew that runs the original in one of the ways a user would try first.

There is no baseline of torch's own libraries: where one call of theirs does a task's work, eager already makes it, or the graph domain's rewrites
propose it as a candidate. Another library that is installed is one (`library_baselines.py`): it makes calls that the original makes, and no pattern.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from warpwright.base import Source
from warpwright.domains.graph import template
from warpwright.domains.graph.libraries import LIBRARIES, Library
from warpwright.errors import MissingExtra, UsageError
from warpwright.targets import library_baselines
from warpwright.tasks import training

MARK = "# --- programs that are to run alone hold what follows\n"
"""A line of warpwright/tf32.py."""


def _tf32_flags() -> str:
    """Return `tf32_flags` and what it needs as the text of a program of its own; importing it would load torch into the parent."""
    names = "import contextlib\nfrom collections.abc import Callable, Iterator\nfrom typing import Any\n\n"
    text = (Path(__file__).parents[1] / "tf32.py").read_text()
    return names + text.rpartition(MARK)[2].replace("  # noqa: E402", "").strip("\n") + "\n"


@dataclass(frozen=True)
class Baseline:
    """One way to run the original."""

    text: str
    """The class ModelNew(Model); `{mode}` is the compile mode."""
    modes: Mapping[str, str]
    """Compile mode by kind of device. A kind that is absent has no such baseline."""
    library: Library | None = None
    """What has to be installed for it."""


_EAGER = '''
class ModelNew(Model):
    """The original, as it is."""
'''

_EAGER_TF32 = f'''
{_tf32_flags()}

class ModelNew(Model):
    """The original with TF32 matrix products and convolutions; the flags are as they were after each call."""

    def forward(self, *args, **kwargs):
        with tf32_flags(True):
            return super().forward(*args, **kwargs)
'''

_COMPILE = '''
@watch
_compiled = torch.compile(Model.forward, mode={mode})


class ModelNew(Model):
    """The original under torch.compile, compiled at the first call. What torch compiled is kept by the code and never by a model."""

    @_functools.wraps(Model.forward)
    def forward(self, *args, **kwargs):
        if torch.compiler.is_compiling() or torch.jit.is_tracing() or any(_Watch.of(self).hooks):  # torch.compile does not notice later hooks
            return super().forward(*args, **kwargs)
        return _compiled(self, *args, **kwargs)
'''

_CUDA_GRAPH = '''
@recording

@watch
class _Recording:
    """One model's calls of one kind as a CUDA graph: copies the inputs in, replays, returns copies of the outputs."""

    @torch.inference_mode(False)  # tensors made in inference mode have no version
    def __init__(self, model, leaves, form):
        self.record(model, leaves, form)
        self.key, tensors = _key_of(model, leaves, form)  # after the calls, which may have kept something in the model
        self.pins = [tensor.detach() for tensor in tensors]  # a pinned address is not given to another tensor

    def record(self, model, leaves, form):
        self.inputs = [torch.empty_like(leaf).copy_(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        state, drawn = [(buffer, buffer.clone()) for buffer in model.buffers()], torch.cuda.get_rng_state()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(stream), _uncached_casts():
            for _ in range(3):
                model.original(self.inputs, form)
        torch.cuda.current_stream().wait_stream(stream)
        self.random = not torch.equal(drawn, torch.cuda.get_rng_state())
        if self.random:  # a replay would draw other numbers than the original
            torch.cuda.set_rng_state(drawn)
            _put_back(state)
            return
        versions = [place._version if isinstance(place, torch.Tensor) else 0 for place in self.inputs]
        self.before = _tensors_of(model)
        self.graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), _recording(self.graph), _uncached_casts():
            results, self.structure = torch.utils._pytree.tree_flatten(model.original(self.inputs, form))
        self.results = [(leaf, _format_of(leaf)) for leaf in results]
        self.changed = [i for i, place in enumerate(self.inputs) if isinstance(place, torch.Tensor) and place._version != versions[i]]
        _put_back(state)  # the warm-up calls may have moved running statistics
        self.done = torch.cuda.Event()
        self.done.record()

    def replay(self, leaves):
        torch.cuda.current_stream().wait_event(self.done)  # of a call from another stream
        for place, leaf in zip(self.inputs, leaves):
            if isinstance(leaf, torch.Tensor):
                place.copy_(leaf)
        self.graph.replay()
        for index in self.changed:
            leaves[index].copy_(self.inputs[index])
        outputs = [leaf.clone(memory_format=kept) if isinstance(leaf, torch.Tensor) else leaf for leaf, kept in self.results]
        self.done.record()
        return torch.utils._pytree.tree_unflatten(outputs, self.structure)


def _format_of(leaf):
    """Return how a result is copied: in its own strides, or, where elements share memory or leave gaps, contiguous. Of such a one torch.clone makes
    a third form: (5, 4, 3) in strides (1, 0, 5) comes out in (1, 5, 20)."""
    strided = isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided
    own = not strided or torch.empty_like(leaf, device="meta").stride() == leaf.stride()
    return torch.preserve_format if own else torch.contiguous_format


@_contextlib.contextmanager
def _uncached_casts():
    """Have autocast convert weights in the graph: what it keeps of them is freed when the caller's block ends."""
    kept = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(kept)


@torch.no_grad()
def _put_back(state):
    for buffer, value in state:
        buffer.copy_(value)


class ModelNew(Model):
    """The original recorded as a CUDA graph at the first call.

    It is recorded anew when an input's shape, type or strides, a number or text among them, a training flag, or the address of a tensor of the
    model changes. A call that wants gradients, draws random numbers, is given objects or is part of the caller's graph, and one of a model with
    hooks, takes the original's forward.
    """

    lock = _threading.Lock()

    @_functools.wraps(Model.forward)
    def forward(self, *args, **kwargs):
        if torch.compiler.is_compiling():
            return super().forward(*args, **kwargs)
        watch = _Watch.of(self)
        leaves, form = torch.utils._pytree.tree_flatten((args, kwargs))
        if not self._may_be_recorded(watch, leaves):
            return super().forward(*args, **kwargs)
        with self.lock:
            if watch.recorded is None or watch.recorded.key != _key_of(self, leaves, form)[0]:
                watch.recorded = _Recording(self, leaves, form)
            return super().forward(*args, **kwargs) if watch.recorded.random else watch.recorded.replay(leaves)

    def original(self, leaves, form):
        args, kwargs = torch.utils._pytree.tree_unflatten(leaves, form)
        return super().forward(*args, **kwargs)

    def _may_be_recorded(self, watch, leaves):
        given, tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)], [*self.parameters(), *self.buffers()]
        if not all(isinstance(leaf, _PLAIN) for leaf in leaves):
            return False
        if torch.jit.is_tracing() or torch._C._are_functorch_transforms_active() or any(watch.hooks) or any(t.is_inference() for t in tensors):
            return False
        if torch.autograd.forward_ad._current_level >= 0 or (torch.is_grad_enabled() and any(t.requires_grad for t in (*given, *tensors))):
            return False
        if not all(type(t) in (torch.Tensor, torch.nn.Parameter) and t.layout is torch.strided and t.is_cuda for t in (*given, *tensors)):
            return False
        return not _elsewhere((*given, *tensors)) and not torch.cuda.is_current_stream_capturing()  # into a graph of the caller's


_PLAIN = (torch.Tensor, bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)
"""Kinds of inputs that are the same when they are equal; an object's contents may change between calls."""


def _key_of(model, leaves, form):
    """Return what a recording holds for, and the tensors of the model: its parameters and buffers, and those that are plain attributes."""
    training, tensors = [], []
    for part in model.modules():
        own = part.__dict__
        training.append(part.training)
        held = [t for kept in (own["_parameters"], own["_buffers"], own) for t in kept.values() if isinstance(t, torch.Tensor)]
        tensors += [t for t in held if t.layout is torch.strided]
    switches = tuple(training), torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    return (form, switches, *map(_form_of, leaves), *((t.data_ptr(), t.nbytes) for t in tensors)), tensors


def _tensors_of(model):
    """Return the tensors that a model's parts hold: the graph writes to their memory even where the call put others in their place, and it would be
    given to somebody else when they are let go of (KernelBench's 3:33 copies its input into a hidden state, and then replaces that)."""
    held = [kept for part in model.modules() for name, kept in part.__dict__.items() if name != "_modules"]
    return [leaf for leaf in torch.utils._pytree.tree_leaves(held) if isinstance(leaf, torch.Tensor)]


def _form_of(leaf):
    return (leaf.shape, leaf.dtype, leaf.stride(), leaf.device) if isinstance(leaf, torch.Tensor) else (type(leaf), leaf)
'''

BASELINES: Mapping[str, Baseline] = {
    "eager": Baseline(_EAGER, {"cpu": "", "cuda": ""}),
    "eager_tf32": Baseline(_EAGER_TF32, {"cuda": ""}),
    "compile": Baseline(_COMPILE, {"cpu": "None", "cuda": "None"}),
    # On CUDA the mode that adds CUDA graphs would hand out outputs that the next call overwrites.
    "compile_max_autotune": Baseline(_COMPILE, {"cpu": '"max-autotune"', "cuda": '"max-autotune-no-cudagraphs"'}),
    "cuda_graph": Baseline(_CUDA_GRAPH, {"cuda": ""}),
    **{name: Baseline(library_baselines.text(library), {"cuda": ""}, library) for name, library in LIBRARIES.items()},
}


OF_STEPS = ("eager", "compile", "compile_max_autotune")
"""Those of training steps: the others hold for a forward without gradients only."""


def names_for(device: str, backward: bool = False) -> tuple[str, ...]:
    """Return the names of the baselines that exist on a device such as cpu or cuda:0, of a forward or of training steps; those of other libraries
    where they are installed."""
    kind = device.partition(":")[0]
    there = {name: baseline for name, baseline in BASELINES.items() if baseline.library is None or baseline.library.installed}
    return tuple(name for name, baseline in there.items() if kind in baseline.modes and not (backward and name not in OF_STEPS))


def expect_known(names: Iterable[str], device: str, backward: bool = False) -> None:
    """Raise UsageError for a baseline that a device does not have, MissingExtra for one whose library is not installed."""
    known = names_for(device, backward)
    unknown = [name for name in names if name not in known]
    for name in unknown:
        library = BASELINES[name].library if name in BASELINES and device.partition(":")[0] in BASELINES[name].modes else None
        if library is not None and library.found and library.lacks:
            raise UsageError(f"the baseline {name!r} needs {library.lacks} beside {library.package}, saw neither", "install one of them")
        if library is not None and not library.found:
            raise MissingExtra(library.module, library.extra, f"the baseline {name!r}")
    if unknown:
        raise UsageError(f"there is no baseline {', '.join(map(repr, unknown))} on {device}", f"known there: {', '.join(known)}")


def baselines(task_source_text: str, device: str, names: Iterable[str] | None = None, backward: bool = False) -> dict[str, Source]:
    """Return the baseline programs by name: those of `names`, in their order, or all that exist on `device`.

    `task_source_text` is the task in KernelBench form (`taskfile.source_text`), `backward` whether it has a training step.
    """
    chosen = names_for(device, backward) if names is None else tuple(names)
    expect_known(chosen, device, backward)
    return {name: _source(task_source_text, device, BASELINES[name], backward) for name in chosen}


def _source(task_source_text: str, device: str, baseline: Baseline, backward: bool) -> Source:
    text = baseline.text.replace("{mode}", baseline.modes[device.partition(":")[0]])
    text = text.replace("@watch", f"{template.watch()}\n").replace("@recording", template.recording())
    program = f"{task_source_text.rstrip()}\n\n{text}"
    if backward:
        return Source("python", (("baseline.py", program + training.NEW_TEXT),), training.STEP_NEW)
    return Source("python", (("baseline.py", program),), training.SHIPPED)
