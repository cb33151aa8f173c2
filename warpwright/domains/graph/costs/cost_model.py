"""The cost model: about how long a program of the graph domain takes, from bytes and operations at a device's rates.

    seconds(ir, target) = sum over calls of max(bytes / memory, operations / arithmetic) + launch; on a GPU at least what the host takes

It ranks candidates before anything is built: a search tries the action with the least estimate first (`Space.estimate`). It decides nothing: what
is faster is measured. That there is nothing to gain is said by measured figures alone (`loop.running.NO_HEADROOM`).

Bytes of a call are its tensors, each once; views move none. A fused kernel moves its operands and results, and may read some again.
Rates are measured: an H200 with torch 2.11 (benchmarks/results/int8_product_h200 and the peaks of `timing/peaks_probe.py`), a CPU of 16 cores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.capture import recurrent
from warpwright.domains.graph.costs import end_cost, host_cost
from warpwright.domains.graph.cpp.calls import COPIES, VIEWS
from warpwright.domains.graph.cpp.regions import whole
from warpwright.domains.graph.cuda import windows
from warpwright.domains.graph.cuda.kernel import CudaKernel
from warpwright.domains.graph.cuda.launches import Launches
from warpwright.domains.graph.cuda.scans import SCANS
from warpwright.domains.graph.ir import GraphIR, argument, aten, dtype, foldable, is_op, is_tensor, placeholders, shape, value
from warpwright.domains.graph.libraries import LIBRARIES
from warpwright.domains.graph.plan import pools
from warpwright.domains.graph.techniques.algebra import einsum
from warpwright.domains.graph.techniques.convolutions.convolution import Convolution
from warpwright.domains.graph.techniques.convolutions.convolution import read as convolution_of
from warpwright.domains.graph.techniques.convolutions.ends import Ended
from warpwright.domains.graph.techniques.products import symmetric_product, tiles
from warpwright.domains.graph.techniques.products.fused_product import FusedProduct
from warpwright.domains.graph.techniques.products.triangular_product import TriangularProduct
from warpwright.domains.graph.techniques.products.view_products import VIEW_PRODUCT, calls_of
from warpwright.domains.graph.techniques.reduction import ADAPTIVE, read_reduction
from warpwright.tf32 import permits


@dataclass(frozen=True)
class Rates:
    """Of a device, per second."""

    memory: float
    """Bytes."""
    launch: float
    """Seconds from the beginning of one small call to that of the next."""
    arithmetic: Mapping[str, float] = field(default_factory=dict)
    """Operations, by kind of product."""


CONVOLUTIONS = {"direct tf32": 68e12, "direct tf32x3": 39e12, "few channels": 60e12, "few channels, 3 axes": 12e12, "3 axes": 40e12,
                "activated, few channels": 8e12,
                "groups": 5e12, "transposed groups": 4e12, "direct long sums": 16e12, "half, few channels, 3 axes": 60e12,
                "half, few channels": 143e12, "half, transposed": 250e12,
                "transposed, few channels, 3 axes": 1.6e12, "implicit half": 550e12, "implicit float32": 165e12,
                "rows half": 140e12, "rows float32": 50e12, "pointwise tf32": 270e12, "pointwise tf32x3": 90e12}  # fmt: skip
"""`direct_convolution`: 16 channels to 64 of 128 x 254 x 254 (L2-25) took 2.24 and 3.86 ms on an H200. And cuDNN's where they are not near the
tensor cores' rate: 8 channels to 64 in TF32 (L2-57) took 0.31 ms; over three axes it has no TF32 kernel, and with few channels 8 to 14 TFLOPS;
transposed ones in four groups took 2.5, 2.0 and 5.7 ms for 6, 14 and 8 GFLOP (L1-72, 73, 75); their phases, ordinary ones, ran at 4 to 21 TFLOPS.
With a ReLU in the same call it has for few channels first no kernel that is quick: six to 64 (L3-17) took 8.7 ms for 58 GFLOP, and 0.6 for 3.5.
Sums of 315 terms (L1-60) took `direct_convolution` 8.5 ms for 139 GFLOP. cuDNN in float16, over three axes, of three channels made eight: 2.7 and
3.7 ms for 105 and 371 GFLOP (L1-54, 60); over two, of an image's three (L1-50 and AlexNet), 1.0 and 4.0 for 144 and 576.
Transposed with strides, to 64 channels, 250 (L2-2, 5 and 16: 1.84, 2.34 and 2.08 ms; of 128 L2-93, 1.02, 500).
Transposed of 3 channels: L2-60 and 89, of 5.4 GFLOP, took torch.compile 4.4 and 4.1 ms, most of it there.
`implicit_convolution`: what is left of its kernels' times (results/implicit_convolution_h200)
without their bytes, which hardly overlap the products: L2-1 0.79 ms, L1-62 0.91, L1-63 4.5, 512 channels to 512 0.23. "pointwise tf32" ran at 267
(results/convolution_ends_h200). "rows" (of an image, with zeros): L1-66 and 60, 0.89 and 0.87 ms with 0.13 and
0.26 for bytes and the cut, made 139 and 340, and 47 and 50 in float32; with strides they are predicted (45 was measured while an odd number of places
was stored channel by channel)."""
ATTENTION = {"flash float32": 145e12, "flash float32, part": 80e12, "flash float32, wide": 37e12, "flash tf32": 200e12, "flash half": 400e12,
             "flash half, part": 250e12, "library float32": 38e12, "library float32, part": 29e12, "library half": 550e12,
             "library half, part": 250e12, "flash float32, beyond 256": 90e12, "flash tf32, beyond 256": 180e12, "flash half, beyond 256": 300e12,
             "library float32, beyond 256": 40e12, "library half, beyond 256": 135e12, "flash hopper": 620e12}  # fmt: skip
FLASH = ("flash_attention", "flash_wide", "flash_forward")
BACKWARD_PRODUCTS = 3.5
"""Products of `flash_backward` over those of the forward: its scores and their gradients are made twice, for dq and for dk and dv."""
"""`flash_attention`, and the library's call, on an H200 (results/attention_h200). "part": ours with a bias, a mask or less than all pairs, of those
that are seen (float32 73 to 88 TFLOP/s of 1,024 keys, bfloat16 206 to 326, causal alone 394); the library's with a mask, of all pairs (27 to 31, 219
to 312). "wide": heads of more than 128 numbers. TF32 was measured causal alone. "beyond 256": `flash_wide`; float32 72 to 97 TFLOP/s beside 33 to 44
of the library; in 16 bits 176 to 247 beside 132 to 139, but with 300 ours ranks as it was measured beside what is written out, whose estimates are
as low (heads of 1,024: 2.2 ms beside 2.0; of 512, masked: 3.0 beside 3.6). "flash hopper": from 512 rows on 393 to 541 TFLOP/s with heads of 64, 523
to 714 with 128 and 542 to 786 with 256, causal ones 0.63 to 0.97 of that."""
SPREAD = 5.0
"""Passes over k and v, spread to all query heads, that the library's call takes in float32 where heads share keys: it has no kernel for that there.
Decoding with 8 of 32 heads and 4,096 keys took 2.95 ms on an H200, `flash_attention` 0.19."""
OF_A_BLOCK = 64
"""Channels of the result that `direct_convolution` takes as long for as for fewer: 16 to 64 made 68 TFLOP/s (L2-25), 8 to 32 and to 16, over three
axes, 38 and 20 (L2-7, L2-8): what it takes is to read patches."""
LONG_SUM = 256
"""Terms from which on `direct_convolution` is that slow."""
PLANNED_TRANSPOSED = 2.3
"""Times that a plan's transposed convolutions with strides are as fast as those of torch's library, on a CPU: 1.4 to 4 on one AMD core."""
FEW_TERMS = 16
"""Channels of the input up to which that is so."""
RATES: Mapping[str, Rates] = {
    "cuda": Rates(4.2e12, 5e-6, {
        "float32": 51e12, "tf32": 380e12, "tf32x3": 56e12, "int8_slices": 250e12, "half": 700e12, "half, tiles of 128": 630e12,
        "half convolution": 500e12, "float64": 60e12,
        **CONVOLUTIONS, **ATTENTION,
    }),
    "cpu": Rates(1e11, 5e-6, {"float32": 1e12, "half": 1e12, "float64": 5e11, "complex": 2e11, "fft": 4e10}),
}
_READ_TWICE = (
    aten.softmax.int, aten.log_softmax.int, aten.batch_norm.default, aten.group_norm.default, aten.instance_norm.default, aten.layer_norm.default,
    aten.rms_norm.default, aten.var, aten.std, aten.logsumexp.default,
)  # fmt: skip
"""Calls whose kernels in torch go over their input more than once."""
NORMED, MULTIPROCESSORS = 1.4, 132
"""Times that torch's norms over the places of images take, of reading their input twice and writing once (group norm 1.7, L1-35; instance norm 1.55,
L1-34); and what a channel of a batch norm in training mode has one of, as a block of cuDNN's: 64 channels of 64 x 512 x 512 took an H200 8.4 ms,
whose bytes are 3.1 (L1-33), and the norms of a UNet of 64 to 1,024 channels 0.81 for 0.37."""
WINDOWS_READ = 4.0
"""Times that torch's pools and cuDNN's depthwise convolutions take, of reading and writing their tensors once: 2 to 9 on an H200."""
VARIANCES_READ = 9.0
"""The same of its variances on a CPU, which go over their elements one by one: 1.1 and 1.3 ms of a core for 188,000 and 216,000 of them (2:23 and
2:15), where its norms take 0.07 and 0.47 with all that they do."""
SCANS_READ = 2.2
"""The same of its running sums and products: 4.6 ms where 2.1 would do (KernelBench's level 1, 89 and 90)."""
PLANES_READ = 3.6
"""Passes over input and result that a convolution on tensor cores takes beside its own where the channels do not come last: for 64 x 64 x 128 x 128
with windows of 3 x 3, cuDNN took 0.92 ms instead of 0.46 on an H200."""
SLICED_LAUNCHES = 12
"""A product of INT8 slices is five kernels, whose launches take a host 60 us; in a CUDA graph 12."""
PLANNED_CALL, PLANNED_LAUNCH = 0.25, 0.32
"""Calls of a kernel from Python that a plan's call takes, and each of its launches: 1, 3 and 6 kernels took 0.6, 1.3 and 2.1 times what one from
Python does (results/launch_plan_h200)."""
FUSED_PRODUCT_LAUNCH = 2.0
"""Launches that one of `fused_product` counts as beside a product that takes longer than the host. With that and WORTH_A_STEP of the ladder it
comes first where its result is the program's (0.72 to 0.98 of the time without it on an H200), not where a norm or a softmax reads that after it
(0.91 to 1.4)."""
GAP = 0.2
"""Of a launch, between two nodes of a CUDA graph: about 1 us."""
FEW = 8
"""Channels of the input below which a convolution with the channels last gains nothing. With 8, to 64 of 128 x 126 x 126, cuDNN took 0.87 ms on an
H200 with the channels first, in float32, and 0.31 in TF32 with the channels last."""
TURNED = 3.5
"""Times that torch's copy to another order of dimensions takes, of reading and writing once: conv2d, min, add, mul of 128 x 128 x 126 x 126 with the
channels last took 3.8 ms on an H200, 2.6 of them for copies of 3.2 GB in all."""
SCATTERED = 5.0
"""Times that a kernel takes whose rows do not lie in one piece: group norm, scale, tanh and more of 128 x 64 x 126 x 126 with the channels last took
2.1 ms on an H200, and 0.4 with the channels first."""
_KINDS = {torch.complex64: "complex", torch.float32: "float32", torch.float64: "float64", torch.bfloat16: "half", torch.float16: "half"}


def seconds(ir: GraphIR, target: str) -> float:
    """Return the estimate; for a program that was not captured 0. Calls that are folded count nothing."""
    rates = RATES[target]
    folded = ir.scheduled("fold_parameters") is not None
    skipped = {node.name for node in foldable(ir.graph)} if folded else set()
    graph = whole(ir).graph if ir.scheduled("plan") else ir.graph  # a plan's calls are joined when it is built
    calls = [node for node in graph.nodes if node.op == "call_function" and node.name not in skipped]
    total = sum(call_seconds(node, rates) for node in calls)
    if ir.scheduled("plan"):
        total -= (1 - 1 / WINDOWS_READ) * sum(bytes_of(node) for node in calls if pools.read(node) is not None) / rates.memory
    launched = sum(launches(node, rates) for node in calls)
    if ir.scheduled("cuda_graph"):
        copied = [node for node in (*placeholders(ir, "input"), *ir.results) if isinstance(node, fx.Node)]
        total += sum(2 * _size(node) for node in copied) / rates.memory + GAP * rates.launch * len(copied)  # in, and out
        total -= (1 - GAP) * rates.launch * max(launched - 1, 0)
    moved = [node for node, strides in zip(ir.results, ir.strides, strict=False) if is_tensor(node) and strides and value(node).stride() != strides]
    total += sum(2 * TURNED * _size(node) for node in moved) / rates.memory  # to the original's layout
    saved = 0.9 if ir.scheduled("plan") else 0.8 if ir.scheduled("ahead_of_time") else 0.0
    total -= saved * rates.launch * max(launched - 1, 0)  # calls from C++, and fewer of them
    if rates is not RATES["cuda"] or ir.training is not None or not calls:
        return total
    busy = total - rates.launch * (1 - GAP) * (1 if ir.scheduled("cuda_graph") else launched)
    return max(total, host_cost.seconds(ir, calls, busy, lambda node: launches(node, rates)))


def call_seconds(node: fx.Node, rates: Rates) -> float:
    """Return the estimate of one call."""
    on_gpu = rates.arithmetic is RATES["cuda"].arithmetic
    if _is_free(node):
        return 2 * TURNED * _size(node) / rates.memory + rates.launch if on_gpu and _is_copied(node) else 0.0
    kind, operations = operations_of(node)
    arithmetic = operations / rates.arithmetic.get(kind, rates.arithmetic["float32"])
    again = 0.0
    if on_gpu:
        again = PLANES_READ * _planes(node) + (2.0 * _size(node) if _adds_bias(node) else 0.0) + SPREAD * _spread(node)
    elif is_op(node, aten.var_mean, aten.var, aten.std):
        again = VARIANCES_READ * _size(node.args[0])  # type: ignore[arg-type]
    if is_op(node, aten.convolution.default) and node.args[6] and max(node.args[3]) > 1:  # type: ignore[arg-type, operator, type-var]
        arithmetic /= PLANNED_TRANSPOSED
    if on_gpu and is_op(node, aten.einsum.default):
        again += 2 * TURNED * einsum.copied_bytes(node) + einsum.bytes_between(node)
    if isinstance(node.target, FusedProduct):  # no product runs beside the end of a tile, which writes it: 2:37's result of 0.5 GB cost 0.1 ms
        arithmetic = max(arithmetic, _in_tiles(node, node.target)) + end_cost.seconds(node, _size(node) / rates.memory)
    if getattr(node.target, "__name__", "").startswith("implicit_convolution"):
        again += bytes_of(node) + _scattered(node)
        return again / rates.memory + arithmetic + launches(node, rates) * rates.launch
    return max(bytes_of(node) / rates.memory, arithmetic) + again / rates.memory + launches(node, rates) * rates.launch


def launches(node: fx.Node, rates: Rates | None = None) -> float:
    """Return how many kernels a call launches, in units of one launched from Python: one, but for a view, for a recurrent network, whose steps wait
    for one another, and on a GPU for a convolution with a bias, which torch adds to cuDNN's result by a kernel of its own."""
    if _is_free(node):
        return 0
    on_gpu = rates is not None and rates.arithmetic is RATES["cuda"].arithmetic
    if getattr(node.target, "__name__", "") == "int8_linear":
        return SLICED_LAUNCHES
    if isinstance(node.target, FusedProduct):
        return FUSED_PRODUCT_LAUNCH + node.target.zeros
    if isinstance(node.target, TriangularProduct):
        return 1 + node.target.zeros
    if node.target is VIEW_PRODUCT:
        return calls_of(node)
    if isinstance(node.target, Launches):
        return PLANNED_CALL + PLANNED_LAUNCH * node.target.count
    if getattr(node.target, "__name__", "") == "implicit_cut":
        return 3  # zeros, and two that cut, of which one does nothing as a rule
    if is_op(node, aten.topk.default, aten.histc.default):
        return 2  # one finds them, one sorts them; one sets the counts to zero
    if getattr(node.target, "__name__", "") in FLASH:
        return 2 if node.target.__name__ == "flash_attention" else 5  # type: ignore[union-attr]  # some cut float32 operands in halves
    if is_op(node, aten.sort, aten.argsort):
        return 3  # one copies the rows, one fills in the places
    return max(1, recurrent.launches(node)) + (on_gpu and _adds_bias(node))


def _adds_bias(node: fx.Node) -> bool:
    """Is it a convolution that cuDNN does, and then another kernel adds the bias? Depthwise ones in float32 are torch's own, bias and all."""
    conv = convolution_of(node)
    return conv is not None and conv.bias is not None and (conv.groups == 1 or conv.groups != shape(conv.x)[1])


def _is_free(node: fx.Node) -> bool:
    """Is it a view of what it reads, or one of several results?"""
    if node.target in VIEWS or getattr(node.target, "__name__", "") == "getitem":
        return True
    if not isinstance(node.target, torch._ops.OpOverload) or node.target._schema.is_mutable or not is_tensor(node):
        return False
    own = value(node).untyped_storage()._cdata
    return any(value(arg).untyped_storage()._cdata == own for arg in node.all_input_nodes if is_tensor(arg))


def _is_copied(node: fx.Node) -> bool:
    """Is it a reshape that no view can be, as of interleaved phases?"""
    if not is_op(node, aten.reshape.default) or not is_tensor(node.args[0]):
        return False
    return bool(value(node).untyped_storage()._cdata != value(node.args[0]).untyped_storage()._cdata) and not value(node.args[0]).is_contiguous()  # type: ignore[arg-type]


def bytes_of(node: fx.Node) -> float:
    """Return the bytes that a call moves."""
    moved = float(sum(_size(arg) for arg in node.all_input_nodes) + _size(node))
    name = getattr(node.target, "__name__", "")
    if isinstance(node.target, Ended):
        return moved - _unread(node)
    if name == "flash_wide":  # scores are written, and read for each slice of v
        moved += 4.0 * math.prod(shape(node.args[0])[:-1]) * shape(node.args[1])[-2] * (1 + math.ceil(shape(node)[-1] / 256))  # type: ignore[arg-type]
    if node.target is VIEW_PRODUCT:  # what is added to is read and written again
        return moved + _size(node) * (len(node.args) - 3)
    if name in FLASH and node.args[16][4]:  # type: ignore[index]
        moved += 2.0 * sum(_size(arg) for arg in node.args[:3])  # type: ignore[misc, arg-type]
    if isinstance(node.target, Launches):
        return sum(bytes_of(one) for one in node.target.calls.nodes if isinstance(one.target, CudaKernel))
    if isinstance(node.target, CudaKernel):
        again = node.target.generated.workspace and not node.target.generated.together
        moved += sum(_size(arg) for arg in node.all_input_nodes) * (0.5 if again else 0)  # half of it is still in L2
        moved += sum(2 * TURNED * _size(arg) for arg in node.target.copied)
        if node.target.program.reduced and any(list(steps) != sorted(steps, reverse=True) for steps in node.target.placement.strides if steps):
            moved *= SCATTERED
    elif is_op(node, *_READ_TWICE):
        moved += _size(node.args[0])  # type: ignore[arg-type]
        moved *= _slow_norm(node)
        if not value(node.args[0]).is_contiguous() and is_op(node, aten.layer_norm.default, aten.rms_norm.default, aten.softmax.int):  # type: ignore[arg-type]
            moved += 2 * TURNED * _size(node.args[0])  # type: ignore[arg-type]
    elif is_op(node, aten.contiguous.default) and value(node).stride() != value(node.args[0]).stride():  # type: ignore[arg-type]
        moved *= TURNED
    elif node.target in COPIES and node.target is not aten.clone.default:
        moved = 0.0
    elif _goes_over_windows(node):
        moved *= WINDOWS_READ
    elif is_op(node, *SCANS):
        moved *= SCANS_READ
    return moved


def _goes_over_windows(node: fx.Node) -> bool:
    """Is it a pool or a depthwise convolution of torch's? Pools that adapt to several windows are taken to be as the others are."""
    if is_op(node, *ADAPTIVE):
        return read_reduction(node) is None
    return windows.read(node) is not None or is_op(node, *windows.MAX_POOLS, *windows.AVERAGE_POOLS)  # with the channels last, too


def _slow_norm(node: fx.Node) -> float:
    """Return how many times its bytes a norm of torch's over the places of images takes."""
    if is_op(node, aten.group_norm.default, aten.instance_norm.default):
        return NORMED
    counts = is_op(node, aten.batch_norm.default) and argument(node, "training") and value(node).dim() >= 4
    return NORMED * max(1.0, MULTIPROCESSORS / max(shape(node)[1], 1)) if counts else 1.0


def _unread(node: fx.Node) -> float:
    """Return the bytes of what a convolution's kernel is given or returns and does not touch: x, where it reads the cut; the rest of a larger one."""
    target: Any = node.target
    into, within = node.args[target.place_of_into : target.place_of_into + 2]
    unread = _size(node.args[0]) if target.file == "implicit_convolution" else 0  # type: ignore[arg-type]
    if within:
        own = shape(node.args[2])[1] if target.file == "implicit_convolution" else shape(node.args[1])[0]  # type: ignore[arg-type]
        unread += int(_size(node) * (within[0] - own) // within[0])  # type: ignore[index, operator, arg-type]
    return float(unread + (_size(into) if isinstance(into, fx.Node) else 0))


def _scattered(node: fx.Node) -> float:
    """Return the bytes that an `implicit_convolution` loses because a transposed one with strides does not write rows in one piece, or 0: with every
    other number 2.1 GB took 8.3 ms on an H200. Two phases of a row are written together where the stride is 2, which was not measured."""
    if not node.args[11] or node.args[7][-1] == 1:  # type: ignore[index]
        return 0.0
    return float(_size(node)) * (1.0 if node.args[7][-1] == 2 else 3.0)  # type: ignore[index]


def _planes(node: fx.Node) -> float:
    """Return the bytes of input and result of a convolution over one or two axes that tensor cores could do, and whose channels do not come last, or
    0. Over one axis (L1-64, 67, 74, 76, 79) cuDNN makes 2 to 4 such passes."""
    conv = convolution_of(node)
    if getattr(node.target, "__name__", "") == "activated_convolution":
        x, weight, groups = node.args[0], node.args[1], node.args[7]
    elif conv is not None and conv.d <= 2:
        x, weight, groups = conv.x, conv.weight, conv.groups
        if math.prod(conv.kernel) * math.prod(conv.stride) == 1 and not any(conv.padding):
            return 0.0  # a product of matrices as it stands: L1-87 took 3.5 ms, its bytes 3.1
    else:
        return 0.0
    if groups != 1 or shape(x)[1] < FEW or shape(x)[1] % 4 or shape(node)[1] % 4:  # type: ignore[arg-type]
        return 0.0
    last = any(
        len(shape(t)) == 4 and value(t).is_contiguous(memory_format=torch.channels_last) and not value(t).is_contiguous()  # type: ignore[arg-type]
        for t in (x, weight)
    )
    return 0.0 if last else float(_size(x) + _size(node))  # type: ignore[arg-type]


def _in_tiles(node: fx.Node, target: FusedProduct) -> float:
    """Return the estimate of a `fused_product`'s sums by waves of its tiles: few of them leave multiprocessors idle."""
    m, k, n = math.prod(shape(node.args[0])[:-1]), shape(node.args[0])[-1], shape(node.args[1])[-2 if target.by_rows else -1]  # type: ignore[arg-type]
    return tiles.sums_seconds(m, n, k, target.blocks)


def operations_of(node: fx.Node) -> tuple[str, float]:
    """Return the kind of a call's product and its multiplications and additions; 0 for what is no product."""
    name = getattr(node.target, "__name__", "")
    if is_op(node, *host_cost.PRODUCTS) or name in ("int8_linear", "tf32x3", "half_product"):
        a: Any = node.args[1] if is_op(node, aten.addmm.default, aten.baddbmm.default) else node.args[0]
        inner = shape(a)[-1]
        kind = {"int8_linear": "int8_slices", "tf32x3": "tf32x3", "half_product": "half"}.get(name, _KINDS.get(value(node).dtype, "float32"))
        return kind, (8.0 if kind == "complex" else 2.0) * math.prod(shape(node)) * inner
    if node.target is VIEW_PRODUCT:
        rights: Any = node.args[2::2]
        return _KINDS.get(value(node).dtype, "float32"), 2.0 * math.prod(shape(node)) * sum(shape(b)[-2] for b in rights)
    if isinstance(node.target, FusedProduct):
        x, w = node.args[:2]
        columns = shape(w)[-2 if node.target.by_rows else -1]  # type: ignore[arg-type]
        return _KINDS.get(value(x).dtype, "float32"), 2.0 * math.prod(shape(x)) * columns  # type: ignore[arg-type]
    if name.startswith(("symmetric_product_", "triangular_product_")):
        return "half, tiles of 128", symmetric_product.operations(node.args[0], node)  # type: ignore[arg-type]
    if name.startswith("fft_") and is_tensor(node) and is_tensor(node.args[0]):
        return "fft", _transform(node)
    if is_op(node, aten.einsum):
        return _KINDS.get(value(node).dtype, "float32"), 2.0 * einsum.operations(node)
    attention = _attention(node) or _of_another_library(node)
    if attention is not None:
        return attention
    if name == "activated_convolution":
        source, window = node.all_input_nodes[:2]
        few = shape(source)[1] < FEW and dtype(source) == torch.float32
        return "activated, few channels" if few else _kind_of(2, 1, shape(source)[1]), 2.0 * math.prod(shape(node)) * math.prod(shape(window)[1:])
    if name.startswith("direct_convolution"):
        weight: Any = node.args[1]
        places, terms = math.prod(node.args[5]) * shape(node.args[0])[0], math.prod(shape(weight)[1:])  # type: ignore[arg-type]
        kind = "direct long sums" if terms > LONG_SUM else f"direct {node.args[7]}"
        return kind, float(2 * places * terms * max(shape(weight)[0], OF_A_BLOCK))
    if name.startswith("implicit_convolution"):
        cut: Any = node.args[2]
        block: Any = node.args[12]
        places = math.prod(shape(node.args[0])[2:] if node.args[11] else node.args[9]) * shape(node.args[0])[0]  # type: ignore[arg-type]
        kind = "rows" if shape(cut)[-2] != node.args[6][-1] else "implicit"  # type: ignore[index, arg-type]
        channels = shape(cut)[1] + (-shape(cut)[1] % block[0] if kind == "rows" else 0)
        return f"{kind} {'half' if node.args[5] == 1 else 'float32'}", 2.0 * places * channels * math.prod(shape(cut)[2:])
    if name.startswith("pointwise_convolution"):
        places = math.prod(node.args[5]) * shape(node.args[0])[0]  # type: ignore[arg-type]
        return f"pointwise {node.args[3]}", 2.0 * places * math.prod(shape(node.args[1]))  # type: ignore[arg-type]
    if is_op(node, aten.convolution.default):  # as a plan has it
        weight, out = node.args[1], node.args[0] if node.args[6] else node
        return "float32", 2.0 * shape(out)[0] * math.prod(shape(out)[2:]) * math.prod(shape(weight))  # type: ignore[arg-type]
    conv = convolution_of(node)
    return (_kind(conv), float(conv.flops)) if conv is not None else ("float32", 0.0)


def _attention(node: fx.Node) -> tuple[str, float] | None:
    """Return the same of an attention; where rows see only what is before them, half of the pairs are counted."""
    if getattr(node.target, "__name__", "") == "flash_backward":
        q, k, v, causal, window = (node.args[at] for at in (1, 2, 3, 7, 9))
        keys = min(float(shape(k)[-2]) * (0.5 if causal else 1.0), float(window or math.inf))  # type: ignore[arg-type]
        pairs = math.prod(shape(q)[:-1]) * keys * (shape(q)[-1] + shape(v)[-1])  # type: ignore[arg-type]
        return f"flash {'float32' if dtype(q) == torch.float32 else 'half'}, part", 2.0 * BACKWARD_PRODUCTS * pairs  # type: ignore[arg-type]
    if getattr(node.target, "__name__", "") == "flash_hopper":
        q, k, _, _, causal = node.args[:5]
        return "flash hopper", 4.0 * math.prod(shape(q)) * shape(k)[-2] * (0.5 if causal else 1.0)  # type: ignore[arg-type]
    ours = getattr(node.target, "__name__", "") in FLASH
    if not ours and not is_op(node, aten.scaled_dot_product_attention.default):
        return None
    q, k, v = node.args[:3]
    causal, half = node.args[4] if ours else argument(node, "is_causal"), dtype(q) != torch.float32  # type: ignore[arg-type]
    keys = float(shape(k)[-2]) * (0.5 if causal else 1.0)  # type: ignore[arg-type]
    if ours and node.args[6]:
        keys = min(keys, float(node.args[6]))  # type: ignore[arg-type]
    sizes = shape(q)[-1], shape(v)[-1]  # type: ignore[arg-type]
    kind = "half" if half else "tf32" if ours and node.args[14] == 1 else "float32"
    if max(sizes) > 256:
        return f"{'flash' if ours else 'library'} {kind}, beyond 256", 2.0 * math.prod(shape(q)[:-1]) * keys * sum(sizes)  # type: ignore[arg-type]
    wide, part = ours and kind == "float32" and max(sizes) > 128, _is_in_part(node, ours)
    kind += ", wide" if wide else ", part" if part and kind != "tf32" else ""
    return f"{'flash' if ours else 'library'} {kind}", 2.0 * math.prod(shape(q)[:-1]) * keys * sum(sizes)  # type: ignore[arg-type]


def _of_another_library(node: fx.Node) -> tuple[str, float] | None:
    """Return the same of a product, a convolution or an attention that another library makes: at the rates of torch's calls, until it is timed."""
    library, _, call = getattr(node.target, "__name__", "").partition("_")
    if library not in LIBRARIES or call not in ("attention", "convolution", "linear"):
        return None
    args: Any = node.args
    if call == "convolution":
        x, weight, bias, stride, padding, dilation, groups, _ = args
        found = Convolution(node, x, weight, bias, False, tuple(stride), tuple(padding), (), tuple(dilation), groups)
        return _kind(found), float(found.flops)
    x, weight = args[:2]
    kind = _KINDS.get(dtype(x), "float32")
    if call == "attention":
        keys, masked = float(shape(weight)[-2]) * (0.5 if args[4] else 1.0), args[3] is not None
        pairs = math.prod(shape(x)[:-1]) * keys * (shape(x)[-1] + shape(node)[-1])
        return f"library {kind}{', part' if masked else ''}", 2.0 * pairs
    return kind, 2.0 * math.prod(shape(node)) * shape(weight)[1]


def _spread(node: fx.Node) -> float:
    """Return the bytes of k and v spread to all query heads, where the library's call has no kernel for heads that share them, else 0."""
    if not is_op(node, aten.scaled_dot_product_attention.default) or value(node).dtype != torch.float32:
        return 0.0
    q, *others = node.args[:3]
    heads = math.prod(shape(q)[:-2])  # type: ignore[arg-type]
    kept = [x for x in others if math.prod(shape(x)[:-2]) < heads]  # type: ignore[arg-type]
    return sum((_size(x) * heads / math.prod(shape(x)[:-2]) for x in kept), 0.0)  # type: ignore[arg-type]


def _is_in_part(node: fx.Node, ours: bool) -> bool:
    """Has it a bias or a mask, or pairs that are left out? A mask with a list of its tiles counts as none, as half of them may be hidden."""
    if not ours:
        return argument(node, "attn_mask") is not None
    causal, window, mask, bias, tiles = (node.args[at] for at in (4, 6, 7, 10, 11))
    return bool(causal or window) or bias is not None or (mask is not None and tiles is None)


def _transform(node: fx.Node) -> float:
    """Return the operations of a Fourier transform: 5 n log2(n) of n complex numbers, half of that of real ones."""
    source, result = value(node.args[0]), value(node)  # type: ignore[arg-type]
    wider = result if result.numel() >= source.numel() else source
    axes = argument(node, "dim")
    axes = range(wider.dim()) if axes is None else [axes] if isinstance(axes, int) else axes
    each = math.prod(wider.shape[axis] for axis in axes)
    return (5.0 if source.is_complex() and result.is_complex() else 2.5) * wider.numel() * math.log2(max(each, 2))


def _kind(conv: Convolution) -> str:
    if value(conv.node).dtype in (torch.float16, torch.bfloat16):
        if conv.transposed and max(conv.stride) > 1 and conv.channels <= OF_A_BLOCK:
            return "half, transposed"
        few = not conv.transposed and shape(conv.x)[1] <= FEW
        return ("half, few channels, 3 axes" if conv.d == 3 else "half, few channels") if few else "half convolution"
    if 1 < conv.groups < shape(conv.x)[1]:
        return "transposed groups" if conv.transposed else "groups"
    if conv.transposed and conv.d == 3 and shape(conv.x)[1] <= FEW:
        return "transposed, few channels, 3 axes"
    return _kind_of(conv.d, 0 if conv.transposed else conv.groups, shape(conv.x)[1])


def _kind_of(d: int, groups: int, channels: int) -> str:
    few = groups == 1 and channels <= FEW_TERMS
    if d == 3:
        return "few channels, 3 axes" if few else "3 axes"
    return "few channels" if few else "tf32" if permits("conv") else "float32"  # 39 TFLOP/s of 128 channels to 128 (libraries_h200)


def _size(node: fx.Node) -> int:
    if is_tensor(node):
        return int(value(node).numel() * value(node).element_size())
    parts = node.meta.get("val")
    return sum(part.numel() * part.element_size() for part in parts if isinstance(part, torch.Tensor)) if isinstance(parts, tuple | list) else 0
