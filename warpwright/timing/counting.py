"""Counts what a task's graph moves and computes, on the meta device: shapes without values.

The program is run once on meta tensors and its operators are noted. From the outputs backwards, each tensor is given the share of its elements
that every correct program needs, a lower bound: NEEDS has a rule for every operator whose inputs certainly all matter, and an operator that is
not there needs nothing. So a missing rule lowers the floor and never raises it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from warpwright.base import Task
from warpwright.tasks.mode import Mode
from warpwright.tasks.taskfile import call, load
from warpwright.timing.rates import Work
from warpwright.workers.tensors.exchange import tensors_in


@dataclass
class Value:
    """A tensor of the program."""

    tensor: torch.Tensor
    from_input: bool = False
    """An input can influence it."""
    zeros: bool = False
    """It may hold structural zeros (masks, one-hot rows, padding), which would make a factor's elements not matter."""
    needed: float = 0.0
    """Lower bound of the share of its elements that a correct program needs."""
    live: bool = False
    in_place: bool = False
    """An operator wrote it into memory that was there."""

    @property
    def numel(self) -> int:
        return self.tensor.numel()


@dataclass
class Call:
    """One operator call."""

    name: str
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    inputs: list[Value]
    outputs: list[Value]
    values: dict[int, Value]
    """What each tensor argument was at the time of the call, by id."""
    flops: float
    pointwise: bool

    def value(self, argument: Any) -> Value | None:
        """Return the value of an argument, if it is a tensor."""
        return self.values.get(id(argument)) if isinstance(argument, torch.Tensor) else None


def count(task: Task) -> Work:
    """Return the work of a task."""
    reference = load(task)
    model, inputs = reference.make_meta_model(), reference.make_inputs(0, "meta")
    return count_model(model, inputs, lambda: call(task.path, "forward", lambda: model(*inputs)))


def count_model(model: torch.nn.Module, inputs: Sequence[Any], run: Callable[[], Any] | None = None) -> Work:
    """Return the work of a model on the meta device; `run` calls it on `inputs`."""
    input_tensors = [leaf for leaf in tree_leaves(list(inputs)) if isinstance(leaf, torch.Tensor)]
    recorder = _Recorder()
    for tensor in input_tensors:
        recorder.add(tensor, Value(tensor, from_input=True, zeros=not tensor.is_floating_point()))
    state = [recorder.add(tensor, Value(tensor)) for tensor in model.parameters()]
    state += [recorder.add(tensor, Value(tensor, zeros=True)) for tensor in model.buffers()]
    own = [recorder.values[id(tensor)] for tensor in input_tensors]
    with torch.no_grad(), torch.device("meta"), recorder:
        result = run() if run else model(*inputs)
    results = tensors_in(result)
    written = _outputs(recorder, results, {_storage(tensor) for tensor in input_tensors})
    _propagate(recorder.calls)
    read = 0 if recorder.tangled else sum(math.floor(value.needed * _bytes(value.tensor)) for value in _distinct(own))
    flops: dict[str, float] = {}
    for op in recorder.calls:
        if op.flops and any(value.live for value in op.outputs):
            kind = str(op.inputs[-1].tensor.dtype).removeprefix("torch.")
            flops[kind] = flops.get(kind, 0.0) + op.flops
    return Work(read, written, sum(_bytes(value.tensor) for value in _distinct(state) if value.live), flops)


def _outputs(recorder: _Recorder, results: Sequence[torch.Tensor], inputs: set[int]) -> int:
    """Mark the program's results as needed and return the bytes that have to be written for them.

    A result that shares an input's memory and was not written there, or that no input can influence, need not be written at each call.
    """
    written: dict[int, int] = {}
    for tensor in results:
        value = recorder.values.get(id(tensor))
        if value is None or not value.from_input:
            continue
        value.live = True
        if _storage(tensor) not in inputs or value.in_place:
            value.needed = 1.0
            storage = tensor.untyped_storage()
            written[_storage(tensor)] = min(storage.nbytes(), written.get(_storage(tensor), 0) + tensor.numel() * tensor.element_size())
    return sum(written.values())


def _propagate(calls: Sequence[Call]) -> None:
    """Carry needs and liveness from the outputs to the inputs."""
    for op in reversed(calls):
        if not any(output.live for output in op.outputs):
            continue
        for value in op.inputs:
            value.live = True
        if any(output.needed > 0 for output in op.outputs):
            for argument, share in _needs(op):
                if argument is not None:
                    argument.needed = max(argument.needed, min(1.0, share))


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _bytes(tensor: torch.Tensor) -> int:
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


def _distinct(values: Sequence[Value]) -> list[Value]:
    """Return one value for each storage."""
    return list({_storage(value.tensor): value for value in values}.values())


class _Recorder(Mode):  # type: ignore[no-untyped-call]
    """Notes every operator that runs."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.values: dict[int, Value] = {}
        self.calls: list[Call] = []
        self.tangled = False
        """Memory that other tensors show was written: who needs what is then not followed."""
        self.seen: dict[int, set[int]] = {}

    def add(self, tensor: torch.Tensor, value: Value) -> Value:
        """Make `value` what `tensor` is from now on."""
        self.values[id(tensor)] = value
        self.seen.setdefault(_storage(tensor), set()).add(id(tensor))
        return value

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        inputs = [self.values.get(id(tensor)) or self.add(tensor, Value(tensor, zeros=True)) for tensor in tensors]
        known = {id(tensor): value for tensor, value in zip(tensors, inputs, strict=True)}
        changed = _written(func, args, kwargs)
        for tensor in changed:
            self.tangled |= len(self.seen[_storage(tensor)]) > 1
        name = func._overloadpacket.__name__
        relevant = inputs[:1] if "batch_norm" in name else inputs  # its running statistics are buffers, but no factors
        zeros = name in MAKES_ZEROS or not inputs or any(value.zeros for value in relevant)
        from_input = any(value.from_input for value in inputs)
        outputs, over = [], {id(tensor) for tensor in changed}
        for tensor in {id(leaf): leaf for leaf in [*tree_leaves(result), *changed] if isinstance(leaf, torch.Tensor)}.values():
            outputs.append(self.add(tensor, Value(tensor, from_input, zeros or not tensor.is_floating_point(), in_place=id(tensor) in over)))
        self.calls.append(Call(name, args, kwargs, inputs, outputs, known, _flops(func, args, kwargs, result), _is_pointwise(func)))
        return result


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Return the arguments that the operator writes to."""
    tensors = []
    for index, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            argument_value = args[index] if index < len(args) else kwargs.get(argument.name)
            tensors += [leaf for leaf in tree_leaves(argument_value) if isinstance(leaf, torch.Tensor)]
    return tensors


def _flops(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> float:
    counted = flop_registry.get(func._overloadpacket)
    return float(counted(*args, **kwargs, out_val=result)) if counted else 0.0


def _is_pointwise(func: Any) -> bool:
    if torch.Tag.pointwise in func.tags:
        return True
    plain = getattr(torch.ops.aten, func._overloadpacket.__name__.rstrip("_"), None)
    overload = getattr(plain, func._overloadname, None)
    return overload is not None and torch.Tag.pointwise in overload.tags


# --- rules: (argument, share of its elements that is needed) ------------------------------------------------------------------------

Needs = list[tuple[Value | None, float]]

MAKES_ZEROS = {"tril", "triu", "diag_embed", "constant_pad_nd", "one_hot", "bernoulli", "native_dropout", "masked_fill", "eye"}


def _needs(op: Call) -> Needs:
    name = op.name.rstrip("_") if op.name not in NEEDS else op.name
    rule = NEEDS.get(name)
    if rule is not None:
        return rule(op)
    if op.pointwise:
        return _homogeneous(op)
    return []


def _share(op: Call) -> float:
    """Return the needed share of the outputs: the largest of them."""
    return max(output.needed for output in op.outputs)


def _homogeneous(op: Call) -> Needs:
    """Every element of every tensor argument matters, and leaving out a share of the outputs frees at most that share of it."""
    return [(value, _share(op)) for value in op.inputs]


def _first(op: Call) -> Needs:
    """The same for the first argument alone."""
    return [(op.value(op.args[0]), _share(op))]


def _nothing(op: Call) -> Needs:
    return []


def _product(op: Call) -> Needs:
    """A factor matters unless the other one may be zero."""
    factors = [argument for argument in op.args if isinstance(argument, torch.Tensor | int | float)]
    needs: Needs = []
    for index, factor in enumerate(factors):
        others = [op.value(other) or other for other in factors[:index] + factors[index + 1 :]]
        if not any(other.zeros if isinstance(other, Value) else other == 0 for other in others):
            needs.append((op.value(factor), _share(op)))
    return needs


def _biased_product(op: Call) -> Needs:
    """addmm(bias, a, b)."""
    bias, *factors = op.args[:3]
    inner = Call("mm", tuple(factors), {}, op.inputs, op.outputs, op.values, 0.0, False)
    return [(op.value(bias), _share(op)), *_product(inner)]


def _part(op: Call) -> Needs:
    """A view of some of the elements."""
    source = op.value(op.args[0])
    assert source is not None
    return [(source, max(output.needed * output.numel / max(1, source.numel) for output in op.outputs))]


def _parts(op: Call) -> Needs:
    """Views that do not overlap."""
    source = op.value(op.args[0])
    assert source is not None
    return [(source, sum(output.needed * output.numel for output in op.outputs) / max(1, source.numel))]


def _among_others(op: Call) -> Needs:
    """Elements are placed among others: those outputs that are not needed may all be these."""
    total = max(1, op.outputs[0].numel)
    absent = (1 - _share(op)) * total
    return [(value, max(0.0, value.numel - absent) / max(1, value.numel)) for value in op.inputs]


def _pad(op: Call) -> Needs:
    return _among_others(op) if all(amount >= 0 for amount in op.args[1]) else []


def _triangle(op: Call) -> Needs:
    rows, columns = op.args[0].shape[-2:]
    diagonal = op.args[1] if len(op.args) > 1 else 0
    upper = sum(max(0, min(columns, columns - row - diagonal)) for row in range(rows))
    on = sum(0 <= row + diagonal < columns for row in range(rows))
    kept = upper if op.name.startswith("triu") else rows * columns - upper + on
    return [(op.value(op.args[0]), max(0.0, _share(op) * rows * columns - (rows * columns - kept)) / max(1, rows * columns))]


def _choice(op: Call) -> Needs:
    """where(condition, a, b) needs the condition; which of a and b it needs depends on values."""
    return [(op.value(op.args[0]), _share(op))]


def _fill(op: Call) -> Needs:
    """masked_fill(x, mask, value) needs the mask."""
    return [(op.value(op.args[1]), _share(op))]


def _copy(op: Call) -> Needs:
    return [(op.value(op.args[1]), _share(op))]


def _along(op: Call) -> Needs:
    """softmax(x, dim): over a single element it is constant."""
    tensor, dim = op.args[0], op.args[1]
    return _first(op) if tensor.dim() and tensor.shape[dim] > 1 else []


def _spread(op: Call) -> Needs:
    """Variance, or a normalisation: over a single element it is constant."""
    source, output = op.value(op.args[0]), op.outputs[-1]
    return _first(op) if source is not None and source.numel > output.numel else []


def _layer_norm(op: Call) -> Needs:
    return _first(op) if math.prod(op.args[1]) > 1 else []


def _group_norm(op: Call) -> Needs:
    _, _, _, _, channels, area, groups = op.args[:7]
    return _first(op) if channels // groups * area > 1 else []


def _batch_norm(op: Call) -> Needs:
    tensor, training = op.args[0], op.args[5] if op.name != "_native_batch_norm_legit_no_training" else False
    return _first(op) if not training or tensor.numel() > tensor.shape[1] else []


def _convolution(op: Call) -> Needs:
    tensor, weight, _, stride, padding, dilation, transposed = op.args[:7]
    weights, share = op.value(weight), _share(op)
    if weights is None or weights.zeros or (transposed and share < 1):
        return []
    spatial = tensor.dim() - 2
    input_sizes, made_sizes = tensor.shape[2:], op.outputs[0].tensor.shape[2:]
    axes = []
    for axis in range(spatial):
        step, pad, gap = (option[axis % len(option)] for option in (stride, padding, dilation))
        axes.append((input_sizes[axis], made_sizes[axis], weight.shape[2 + axis], step, pad, gap))
    if transposed:
        return [(op.value(tensor), math.prod(_feeds(*axis) for axis in axes))]
    return [(op.value(tensor), _windows(share, axes))]


def _pool(op: Call) -> Needs:
    """max_pool or avg_pool(x, kernel, stride, padding[, dilation])."""
    tensor, kernel = op.args[0], op.args[1]
    stride = (op.args[2] if len(op.args) > 2 else []) or kernel
    padding = op.args[3] if len(op.args) > 3 else [0]
    dilation = op.args[4] if op.name.startswith("max") and len(op.args) > 4 else [1]
    spatial = len(kernel)
    sizes = op.outputs[0].tensor.shape[-spatial:]
    axes = []
    for axis in range(spatial):
        step, pad, gap = (option[axis % len(option)] for option in (stride, padding, dilation))
        axes.append((tensor.shape[axis - spatial], sizes[axis], kernel[axis], step, pad, gap))
    return [(op.value(tensor), _windows(_share(op), axes))]


Axis = tuple[int, int, int, int, int, int]
"""size, outputs, kernel, stride, padding, dilation"""


def _windows(share: float, axes: Sequence[Axis]) -> float:
    """Return the share of positions that windows reach at least, when only `share` of the windows are needed.

    Windows that are all alike reach in proportion. Where padding or the end of an axis cuts some of them, the needed ones may be the small
    ones. Give each position to the last window that reaches it: a window then has at most a stride of its own, but for those at the end,
    which have the overlaps too. So each window that is not needed frees at most a stride, and all together at most the overlaps more.
    """
    touched = math.prod(_touched(*axis) for axis in axes)
    alike = all(padding == 0 and (outputs - 1) * stride + (kernel - 1) * gap < size for size, outputs, kernel, stride, padding, gap in axes)
    if share >= 1.0 or alike:
        return share * touched
    own = math.prod(outputs * (kernel if gap > 1 else min(kernel, stride)) / size for size, outputs, kernel, stride, _, gap in axes)
    return max(0.0, touched - (1 - share) * own - max(0.0, touched - own))


def _touched(size: int, outputs: int, kernel: int, stride: int, padding: int, dilation: int) -> float:
    """Return the share of positions that a window reaches as it steps along an axis."""
    if outputs * kernel > 10_000_000:
        return 0.0
    reached = {o * stride - padding + k * dilation for o in range(outputs) for k in range(kernel)}
    return sum(0 <= position < size for position in reached) / max(1, size)


def _feeds(size: int, outputs: int, kernel: int, stride: int, padding: int, dilation: int) -> float:
    """Return the share of positions that a transposed convolution spreads to at least one output."""
    if size * kernel > 10_000_000:
        return 0.0
    return sum(any(0 <= i * stride - padding + k * dilation < outputs for k in range(kernel)) for i in range(size)) / max(1, size)


def _attention(op: Call) -> Needs:
    """Queries, and keys and values when all outputs are needed; a mask may leave some of those out."""
    query, key, value = (op.value(argument) for argument in op.args[:3])
    masked = any(argument is not None and op.value(argument) is not None for argument in op.args[3:]) or any(
        isinstance(argument, torch.Tensor) for argument in op.keywords.values()
    )
    whole = _share(op) if not masked and _share(op) == 1.0 else 0.0
    return [(query, _share(op) if not masked else 0.0), (key, whole), (value, whole)]


Rule = Callable[[Call], Needs]

_TABLE: Sequence[tuple[Rule, str]] = (
    (_nothing, "fill zero uniform normal bernoulli random exponential"),
    (_copy, "copy"),
    (_choice, "where"),
    (_fill, "masked_fill"),
    (_product, "mul mm bmm mv dot"),
    (_biased_product, "addmm baddbmm addmv"),
    (_first, "sum mean amax amin max min prod logsumexp argmax argmin norm linalg_vector_norm any all"),
    (_first, "cumsum cumprod logcumsumexp cummax cummin sort topk"),
    (_spread, "var std var_mean std_mean"),
    (_along, "_softmax _log_softmax _safe_softmax"),
    (_homogeneous, "hardswish hardsigmoid hardtanh hardshrink prelu _prelu_kernel"),
    (_layer_norm, "native_layer_norm _fused_rms_norm"),
    (_group_norm, "native_group_norm"),
    (_batch_norm, "native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training cudnn_batch_norm"),
    (_convolution, "convolution"),
    (_pool, "max_pool2d_with_indices max_pool3d_with_indices avg_pool2d avg_pool3d"),
    (_first, "_adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d"),
    (_homogeneous, "mse_loss smooth_l1_loss huber_loss binary_cross_entropy"),
    (_attention, "_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_efficient_attention "
     "_scaled_dot_product_attention_math _scaled_dot_product_cudnn_attention"),
    (_first, "view _unsafe_view reshape _reshape_alias permute transpose t expand unsqueeze squeeze clone contiguous _to_copy alias detach flip roll "
     "repeat pixel_shuffle pixel_unshuffle lift_fresh view_as_real"),
    (_part, "slice select narrow diagonal unfold_view"),
    (_parts, "split split_with_sizes unbind chunk unsafe_split unsafe_split_with_sizes unsafe_chunk"),
    (_among_others, "cat stack diag_embed"),
    (_pad, "constant_pad_nd"),
    (_triangle, "tril triu"),
)  # fmt: skip

NEEDS: dict[str, Rule] = {name: rule for rule, names in _TABLE for name in names.split()}
"""Rule by operator. Point-wise operators without one follow `_homogeneous`; all others need nothing."""
