"""Calls of a layer on a small graph that stays, recorded as CUDA graphs: there launches by the host take most of the time.

A layer's call is recorded at its fifth time with the same edge tensors, parameters and shapes, where that is asked for. A recording reads the
parameters where they lie; features are read where they lie if they are always the same leaf, and copied otherwise. Results and gradients are copies,
so they may be kept and written. What does not fit the recording is computed as usual. Threads take turns.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._utils import _unflatten_dense_tensors

from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn.nn.joined import Joined
from warpwright.domains.rgnn.nn.launches import AFTER, Captured, Layout, capture, layout, settings
from warpwright.domains.rgnn.nn.members import Members

Call = Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]
"""The layer's results for given features."""

Given = tuple[bool, ...] | None
"""Which results a backward has gradients of; None: all."""

EDGES = 1_000_000
"""Edges up to which launches count."""
MANY = 4
"""Tensors of a shape, in the mean, from which they lie side by side."""
MOST = 4
"""Graphs of a layer that are remembered."""


def warm(function: Callable[[], Any]) -> None:
    """Run what is to be captured, so that nothing is compiled or looked up for the first time while it is."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            function()
    torch.cuda.current_stream().wait_stream(side)


class Pieces:
    """Where tensors lie in one piece of memory: where many have one shape, those side by side, so that one call takes them apart.

    A hundred of HGT's weights are of one number. Its 150 gradients on aifb's graph take 117 us of a host so, and 174 as a view apiece; RGCN's three
    take less as a view apiece.
    """

    def __init__(self, like: Sequence[torch.Tensor]) -> None:
        self.like, self.groups = list(like), dict[torch.Size, list[int]]()
        for place, x in sorted(enumerate(like), key=lambda pair: -pair[1].numel()):
            self.groups.setdefault(x.shape, []).append(place)
        self.sizes = [shape.numel() * len(places) for shape, places in self.groups.items()]
        self.alike = MANY * len(self.groups) <= len(self.like)

    def apart(self, flat: torch.Tensor) -> Sequence[torch.Tensor]:
        """Return the tensors, as parts of `flat`."""
        if not self.alike:
            return _unflatten_dense_tensors(flat, self.like)
        found: dict[int, torch.Tensor] = {}
        for (shape, places), part in zip(self.groups.items(), flat.split(self.sizes), strict=True):
            found.update(zip(places, part.view(len(places), *shape).unbind(), strict=True))
        return [found[place] for place in range(len(found))]


class Recording:
    """Forward, and backward where gradients are wanted, of one layer on one graph."""

    def __init__(
        self, call: Call, features: Sequence[torch.Tensor], baked: Sequence[bool], parameters: Sequence[torch.Tensor], given: Given = None
    ) -> None:
        self.given: Given = given
        self.other: Given = None
        """Results that a backward had gradients of, where those are others than `given`."""
        self.call, self.number = call, 0
        self.features = [x.detach() if one else x.detach().clone() for x, one in zip(features, baked, strict=True)]
        for own, x in zip(self.features, features, strict=True):
            own.requires_grad_(x.requires_grad and torch.is_grad_enabled())
        self.copied = [place for place, one in enumerate(baked) if not one]
        self.wanted = [x for x in (*self.features, *parameters) if x.requires_grad] if torch.is_grad_enabled() else []
        self.turn = threading.RLock()
        """One thread at a time: a run's results lie where the next one's do until they are copied."""
        self.live: list[torch.Tensor] = []
        self.graded: list[bool] = []
        """Which of `wanted` have a gradient."""
        self.pieces = Pieces([])
        """The gradients that there are."""
        warm(self._both)
        self.incoming = self._chosen([torch.zeros_like(x) for x in self._forward()]) if self.wanted else []
        self.joined = Joined([])
        with indices.watched() as graphs:
            self.forward = capture(self._forward_in_one)
            self.out = [x.detach() for x in self.forward.out]
            self.backward = capture(self._backward, self._pool()) if self.wanted else None
        self.live, self.forward.out = [], self.out
        self.held: list[Any] = [kept for _, _, kept in graphs]
        """What the launches read besides: indices, and what is kept beside them."""

    def _pool(self) -> Any:
        return self.forward.graph.pool() if isinstance(self.forward, Captured) else None

    def _forward(self) -> list[torch.Tensor]:
        self.live = self.call(self.features)
        return self.live

    def _forward_in_one(self) -> list[torch.Tensor]:
        """Return the results in one piece of memory: a copy of each is a launch."""
        self.joined = Joined([x.detach() for x in self._forward()])
        return self.joined.memory

    def copies(self) -> tuple[torch.Tensor, ...]:
        """Return the results of the last run in memory of their own."""
        return self.joined.copies(self.out)

    def _both(self) -> None:
        self._forward()
        if self.wanted:
            results = self._chosen(self.live)
            torch.autograd.grad(results, self.wanted, [torch.ones_like(x) for x in results], allow_unused=True)

    def _chosen(self, of_results: Sequence[Any]) -> list[Any]:
        """Return what belongs to the results that a backward has gradients of."""
        return [x for x, one in zip(of_results, self.given or [True] * len(of_results), strict=True) if one]

    def _backward(self) -> list[torch.Tensor]:
        """Return all gradients in one piece of memory."""
        gradients = torch.autograd.grad(self._chosen(self.live), self.wanted, self.incoming, allow_unused=True)
        self.graded, own = [x is not None for x in gradients], [x for x in gradients if x is not None]
        self.pieces = Pieces(own)
        flat = self.live[0].new_empty(sum(self.pieces.sizes))
        torch._foreach_copy_(list(self.pieces.apart(flat)), own)
        return [flat]

    def run(self, features: Sequence[torch.Tensor]) -> int:
        """Compute the results for these features; return the number of the run."""
        if self.copied:
            torch._foreach_copy_([self.features[i].detach() for i in self.copied], [features[i].detach() for i in self.copied])
        self.forward.replay()
        self.number += 1
        return self.number

    def gradients(self, number: int, features: Sequence[torch.Tensor], incoming: Sequence[torch.Tensor | None]) -> Sequence[torch.Tensor | None]:
        """Return the gradients of `wanted` for a run; it is run again where its values are no longer there."""
        assert self.backward is not None
        given = tuple(x is not None for x in incoming)
        if given != (self.given or (True,) * len(given)):
            self.other = given
            return self._unrecorded(features, incoming)
        if number != self.number:
            self.run(features)
        torch._foreach_copy_(self.incoming, self._chosen(incoming))
        self.backward.replay()
        self.number += 1  # the backward's values may lie where the forward's were
        pieces = self.pieces.apart(self.backward.out[0].clone())  # a slice apiece took milliseconds with 500 parameters
        if all(self.graded):
            return pieces
        rest = iter(pieces)
        return [next(rest) if graded else None for graded in self.graded]

    def _unrecorded(self, features: Sequence[torch.Tensor], incoming: Sequence[torch.Tensor | None]) -> Sequence[torch.Tensor | None]:
        """Return the gradients where some results have none: those of what only these depend on are None, not zeros."""
        with torch.enable_grad():
            own = [x.detach().requires_grad_(y.requires_grad) for x, y in zip(features, self.features, strict=True)]
            pairs = [(x, g) for x, g in zip(self.call(own), incoming, strict=True) if g is not None]
        wanted = [x for x in (*own, *self.wanted[sum(x.requires_grad for x in own) :]) if x.requires_grad]
        if not pairs:
            return [None] * len(wanted)
        return torch.autograd.grad([x for x, _ in pairs], wanted, [g for _, g in pairs], allow_unused=True)


class _Replayed(torch.autograd.Function):
    """A recorded call as one node of autograd."""

    @staticmethod
    def forward(ctx: Any, recording: Recording, alive: Sequence[Any], count: int, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.recording, ctx.alive, ctx.count = recording, alive, count
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        with recording.turn:
            ctx.number = recording.run(tensors[:count])
            return recording.copies()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *incoming: torch.Tensor) -> tuple[Any, ...]:
        tensors = ctx.saved_tensors
        with ctx.recording.turn:
            gradients = ctx.recording.gradients(ctx.number, tensors[: ctx.count], incoming)
        if len(gradients) == len(tensors):
            return None, None, None, *gradients
        rest = iter(gradients)
        return None, None, None, *(next(rest) if wanted else None for wanted in ctx.needs_input_grad[3:])


@dataclass
class State:
    """What is known of a layer's calls on one graph in one mode."""

    edges: list[Any]
    """Weak references to the edge tensors."""
    seen: indices.Versions
    """The same, with what was told of them."""
    key: Any = None
    layout: Layout | None = None
    features: list[Any] = field(default_factory=list)
    """Weak references to the features of the last call, and where they lay."""
    same: bool = True
    """Were the features always the same leaves?"""
    calls: int = 0
    given: Given = None
    others: int = 0
    """How often a backward had gradients of other results."""
    recording: Recording | None = None
    stream: int = 0

    def restart(self, key: Any) -> None:
        """Begin to count again."""
        self.key, self.calls, self.recording, self.features, self.given, self.others = key, 0, None, [], None, 0

    def of_same(self, features: Sequence[torch.Tensor]) -> bool:
        """Are the features the leaves of the last call, where they lay then? Remembers them."""
        if not self.same:
            return False
        pairs = zip(self.features, features, strict=True) if len(self.features) == len(features) else ()
        same = bool(self.features) and all(ref() is x and x.is_leaf and lies == _place(x) for (ref, lies), x in pairs)
        known, self.features = bool(self.features), [(weakref.ref(x), _place(x)) for x in features]
        if known and not same:
            self.same, self.recording, self.calls = False, None, min(self.calls, AFTER - 1)
        return same


class Replays:
    """The recordings of one layer. Copies of a layer, also by pickle, begin without any."""

    def __init__(self) -> None:
        self.states: OrderedDict[tuple[int, bool], State] = OrderedDict()
        self.refused = False
        """Has the layer computed something that cannot be recorded?"""
        self.owner: Any = None
        self.members = Members()
        self.plain: list[str] = []
        """The layer's attributes that are numbers, strings or None."""
        self.attributes = 0
        """How many attributes it had."""
        self.turn = threading.RLock()

    def __reduce__(self) -> Any:
        return Replays, ()

    def settings(self, layer: torch.nn.Module) -> list[Any]:
        """Return the values of the layer's plain attributes."""
        own = vars(layer)
        if len(own) != self.attributes:
            self.attributes, self.plain = len(own), [name for name, value in own.items() if type(value) in PLAIN]
        return [own.get(name) for name in self.plain]

    def recorded(
        self, layer: torch.nn.Module, call: Callable[[], Call], features: Sequence[torch.Tensor], edges: Sequence[torch.Tensor], told: Any
    ) -> list[torch.Tensor] | None:
        """Return the results of a recorded call; None where there is no recording, or none yet.

        `call`: makes what is recorded, `told`: what else a call depends on.
        """
        if not suitable(features):
            return None
        parameters = self.members.parameters(layer)
        with self.turn:
            recording = self._recording(layer, call, features, edges, told, parameters)
        return None if recording is None else played(recording, features, parameters, (layer, *edges))

    def _recording(
        self, layer: torch.nn.Module, call: Callable[[], Call], features: Sequence[torch.Tensor], edges: Sequence[torch.Tensor], told: Any,
        parameters: Sequence[torch.Tensor],
    ) -> Recording | None:  # fmt: skip
        """Return the recording of a call, made now where it is time for it."""
        place = (id(edges[0]), torch.is_grad_enabled())
        state = self.states.get(place)
        if state is None or state.edges[0]() is not edges[0]:
            self.owner = self.owner or weakref.ref(layer)
            if few(edges, features[0].device) and self.owner() is layer:
                self.states[place] = State([weakref.ref(x) for x in edges], indices.Versions.of(edges))
            while len(self.states) > 2 * MOST:
                self.states.popitem(last=False)
            return None
        if self.owner() is not layer or layer._forward_pre_hooks or any(x._backward_hooks for x in (*parameters, *features)):
            # a replica, which shares this; weights that are set anew for each call (pruning, weight norm); hooks, which a recorded backward would
            # hold, and autograd would call once more
            return None
        state.layout = layout(parameters, state.layout)
        key = (
            told, [(x.shape, x.dtype, x.device, x.requires_grad) for x in features],
            state.layout, self.settings(layer), settings("matmul"),
        )  # fmt: skip
        if key != state.key or any(ref() is not x for ref, x in zip(state.edges, edges, strict=True)) or not state.seen.same():
            if not few(edges, features[0].device) or any(isinstance(value, torch.Tensor) for value in vars(layer).values()):
                return None  # a weight that is no parameter
            state.restart(key)
            state.edges, state.seen = [weakref.ref(x) for x in edges], indices.Versions.of(edges)
        state.of_same(features)
        state.calls += 1
        if state.calls <= AFTER:
            return None
        stream = stream_of(features[0])
        if state.recording is not None and state.recording.other is not None:
            state.given, state.others, state.recording = state.recording.other, state.others + 1, None
        if state.others > MOST:
            return None  # another choice of results each time
        if state.recording is None:
            try:
                state.recording, state.stream = Recording(call(), features, [state.same] * len(features), parameters, state.given), stream
            except RuntimeError:
                self.refused = True  # a launch that cannot be captured
                return None
        return state.recording if state.stream == stream else None


PLAIN = {str, int, float, bool, type(None)}


def _place(x: torch.Tensor) -> tuple[Any, ...]:
    return x.data_ptr(), x.stride()  # `.data = ` gives a leaf other memory


def played(
    recording: Recording, features: Sequence[torch.Tensor], parameters: Sequence[torch.Tensor], alive: Sequence[Any] = ()
) -> list[torch.Tensor]:
    """Return the results of a recording, with gradients where they are wanted. What is `alive` stays so until the backward."""
    if recording.wanted:
        return list(_Replayed.apply(recording, alive, len(features), *features, *parameters))
    with recording.turn:
        recording.run(features)
        return list(recording.copies())


def suitable(features: Sequence[torch.Tensor]) -> bool:
    """Is it a call on this thread's GPU, of float32, and not captured or traced by somebody else?"""
    device = features[0].device
    if device.type != "cuda" or any(x.dtype is not torch.float32 or x.device != device for x in features):
        return False
    if torch.cuda.is_current_stream_capturing() or torch.is_inference_mode_enabled() or torch._C._cuda_getDevice() != (device.index or 0):
        return False
    return torch._C._autograd._top_saved_tensors_default_hooks(True) is None  # checkpointing counts a forward's saved tensors


def few(edges: Sequence[torch.Tensor], device: torch.device) -> bool:
    """Are the edges those of a small graph on this device?"""
    return not any(x.is_inference() or x.device != device for x in edges) and sum(x.shape[-1] for x in edges if x.dim() == 2) <= EDGES


def stream_of(x: torch.Tensor) -> int:
    """Return the current stream of a tensor's device."""
    return torch._C._cuda_getCurrentRawStream(x.device.index or 0) if x.is_cuda else 0
