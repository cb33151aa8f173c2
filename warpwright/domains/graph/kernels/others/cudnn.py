"""Calls as graphs that cuDNN compiles and runs in one go: attention, convolutions and products with what they end with, norms. Needs the package
nvidia-cudnn-frontend, and cuDNN, which torch brings along.

    relu(conv2d(x, w, b))  ->  conv_fprop, add, relu            scaled_dot_product_attention(q, k, v)  ->  sdpa

Read at release 1.32, cuDNN 9.24. A graph is compiled at the first call of each form (0.01 to 2 s) and kept; where cuDNN has no kernel for one,
torch makes the call and a warning says so. Float32 stays float32 unless torch's flags permit TF32: engines on tensor cores are struck out, as torch
strikes them out.
"""

# mypy: ignore-errors
from warpwright.domains.graph.kernels.others.calls import HALVES, OWN, eps_of, form_of, is_row, library_call  # noqa: I001

# --- generated programs hold what follows

import math
import threading
import warnings

import torch

_HANDLES, _PLANS = threading.local(), {}
"""A handle of cuDNN's for each thread and GPU; for each call and form of its tensors a plan, None where cuDNN has none."""


def cudnn(call, x, *rest):
    return library_call(CUDNN, "cudnn", "nvidia-cudnn-frontend", call, x, *rest)


class _CudnnPlan:
    """A graph that cuDNN has compiled for tensors of one form. `like`: a tensor with the result's form."""

    def __init__(self, library, write, tensors, like, tf32):
        kinds = {torch.float32: library.data_type.FLOAT, torch.float16: library.data_type.HALF, torch.bfloat16: library.data_type.BFLOAT16}
        self.library, self.like, self.device = library, like, tensors[0].device
        self.graph = graph = library.pygraph(
            io_data_type=kinds[like.dtype], intermediate_data_type=library.data_type.FLOAT, compute_data_type=library.data_type.FLOAT,
            **_cudnn_target(library, self.device),
        )  # fmt: skip
        places = [
            graph.tensor(dim=list(t.shape), stride=_steps(t), data_type=kinds[t.dtype], is_pass_by_value=t.device.type == "cpu", uid=i + 1)
            for i, t in enumerate(tensors)
        ]
        result = write(library, graph, *places)
        result.set_output(True).set_data_type(kinds[like.dtype]).set_dim(list(like.shape)).set_stride(list(like.stride())).set_uid(len(tensors) + 1)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([library.heur_mode.A, library.heur_mode.FALLBACK])
        if like.dtype is torch.float32 and not tf32:
            notes = library.numerical_note
            graph.deselect_numeric_notes([notes.TENSOR_CORE, notes.DOWN_CONVERT_INPUTS, notes.REDUCED_PRECISION_REDUCTION])
        graph.check_support()
        graph.build_plans()
        self.workspace = max(1, graph.get_workspace_size())

    def __call__(self, tensors):
        result = torch.empty_strided(self.like.shape, self.like.stride(), dtype=self.like.dtype, device=self.device)
        workspace = torch.empty(self.workspace, dtype=torch.uint8, device=self.device)
        places = {i + 1: t for i, t in enumerate((*tensors, result))}
        self.graph.execute(places, workspace, **_cudnn_target(self.library, self.device))
        return result


def _steps(t):
    return [max(1, step) if n == 1 else step for n, step in zip(t.shape, t.stride(), strict=True)]


def _cudnn_target(library, device):
    """Return what a graph is compiled for and runs on: this thread's handle on a GPU, on torch's current stream."""
    handles = _HANDLES.__dict__
    if device.index not in handles:
        with torch.cuda.device(device):
            handles[device.index] = library.create_handle()
    library.set_stream(handle=handles[device.index], stream=torch.cuda.current_stream(device).cuda_stream)
    return {"handle": handles[device.index]}


def _by_cudnn(library, call, given, write, tensors, like, rest):
    """Return the call of OWN on `rest`: by the plan for tensors of this form and `given`, or by torch where cuDNN has none."""
    tf32 = _permits_tf32("matmul" if call == "linear" else "conv")
    key = call, given, tf32, *((t.shape, t.stride(), t.dtype, t.device) for t in tensors)
    if key not in _PLANS:
        try:
            plan = _CudnnPlan(library, write, tensors, like(), tf32)
            _PLANS[key] = plan if _keeps_nan(plan, call, tensors, rest) else None
            seen = "" if _PLANS[key] else "its kernel does not keep NaN as torch's does"
        except library.cudnnGraphNotSupportedError as error:
            _PLANS[key], seen = None, f"it has no kernel for it: {error}"
        if seen:
            warnings.warn(f"torch makes the call {call} for cuDNN: {seen[:500]}", stacklevel=5)
    return OWN[call](*rest) if _PLANS[key] is None else _PLANS[key](tensors)


def _permits_tf32(kind):
    return torch._C._get_fp32_precision_getter("cuda", kind) == "tf32"


def _keeps_nan(plan, call, tensors, rest):
    """Is the result NaN where torch's is? A ReLU of cuDNN's may make 0 of NaN; a verifier sees that only where a task's inputs hold NaN."""
    if call not in ("convolution", "linear") or not rest[-1]:
        return True
    seen, expected = plan([torch.full_like(tensors[0], math.nan), *tensors[1:]]), OWN[call](torch.full_like(rest[0], math.nan), *rest[1:])
    return torch.equal(seen.isnan().view(expected.shape), expected.isnan())


_CUDNN_ENDS = {
    "": lambda graph, x: x,
    "relu": lambda graph, x: graph.relu(input=x),
    "silu": lambda graph, x: graph.swish(input=x),
    "gelu": lambda graph, x: graph.gelu(input=x),
    "gelu_tanh": lambda graph, x: graph.gelu_approx_tanh(input=x),
    "sigmoid": lambda graph, x: graph.sigmoid(input=x),
    "tanh": lambda graph, x: graph.tanh(input=x),
}


def _ended(graph, y, end, bias):
    """Return y with a bias, if there is one, and an activation."""
    return _CUDNN_ENDS[end](graph, graph.add(a=y, b=bias[0]) if bias else y)


def _cudnn_convolution(library, x, weight, bias, stride, padding, dilation, groups, end):
    stride, padding, dilation = (list(numbers) for numbers in (stride, padding, dilation))
    form = form_of(x, weight)
    tensors = [x.contiguous(memory_format=form), weight.contiguous(memory_format=form)]
    if bias is not None:
        tensors.append(bias.view(1, -1, *(1,) * (x.dim() - 2)))

    def write(library, graph, image, filters, *more):
        y = graph.conv_fprop(image=image, weight=filters, padding=padding, stride=stride, dilation=dilation)
        return _ended(graph, y, end, more)

    def like():
        windows = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
        sizes = [(n + 2 * pad - gap * (k - 1) - 1) // step + 1 for n, k, step, pad, gap in windows]
        return torch.empty(x.shape[0], weight.shape[0], *sizes, dtype=x.dtype, device="meta").contiguous(memory_format=form)

    given = (*stride, *padding, *dilation, end)
    return _by_cudnn(library, "convolution", given, write, tensors, like, (x, weight, bias, stride, padding, dilation, groups, end))


def _cudnn_linear(library, x, weight, bias, end):
    rows = x.reshape(1, -1, x.shape[-1]).contiguous()
    tensors = [rows, weight.t().unsqueeze(0)] + ([] if bias is None else [bias.view(1, 1, -1)])

    def write(library, graph, a, b, *more):
        return _ended(graph, graph.matmul(a, b), end, more)

    def like():
        return torch.empty(1, rows.shape[1], weight.shape[0], dtype=x.dtype, device="meta")

    return _by_cudnn(library, "linear", (end,), write, tensors, like, (x, weight, bias, end)).view(*x.shape[:-1], weight.shape[0])


def _cudnn_attention(library, q, k, v, mask, causal, scale, grouped):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    if mask is not None:  # one that is spread to all heads, as it is
        whole = mask.shape[2] * mask.stride(2)
        sizes, steps = [1 if mask.stride(i) == 0 else mask.shape[i] for i in (0, 1)], [mask.stride(i) or whole for i in (0, 1)]
        mask = mask.as_strided((*sizes, *mask.shape[2:]), (*steps, *mask.stride()[2:]))
    tensors = [q, k, v] + ([] if mask is None else [mask])

    def write(library, graph, q, k, v, *bias):
        more = {"bias": bias[0]} if bias else {}
        if causal:
            more |= {"diagonal_alignment": library.diagonal_alignment.TOP_LEFT, "diagonal_band_right_bound": 0}
        return graph.sdpa(q=q, k=k, v=v, attn_scale=scale, generate_stats=False, **more)[0]

    def like():  # as torch lays it out: heads and positions in the order of q's
        batch, heads, length, _ = q.shape
        if q.stride(1) < q.stride(2):
            return torch.empty(batch, length, heads, v.shape[-1], dtype=q.dtype, device="meta").transpose(1, 2)
        return torch.empty(batch, heads, length, v.shape[-1], dtype=q.dtype, device="meta")

    return _by_cudnn(library, "attention", (causal, scale), write, tensors, like, (q, k, v, mask, causal, scale, grouped))


def _cudnn_norm(library, call, x, sizes, weight, bias, eps, rest):
    count = math.prod(sizes)
    rows = x.reshape(-1, count, 1, 1).contiguous()
    eps = torch.full((1, 1, 1, 1), eps_of(x, eps))
    tensors = [rows, weight.reshape(1, count, 1, 1), *([] if bias is None else [bias.reshape(1, count, 1, 1)]), eps]

    def write(library, graph, x, scale, *more):
        norm = graph.rmsnorm if call == "rms_norm" else graph.layernorm
        given = {"bias": more[0]} if len(more) == 2 else {}
        return norm(input=x, scale=scale, epsilon=more[-1], norm_forward_phase=library.norm_forward_phase.INFERENCE, **given)[0]

    def like():
        return torch.empty(rows.shape, dtype=x.dtype, device="meta")

    return _by_cudnn(library, call, (), write, tensors, like, rest).view(x.shape)


def _is_plain(*tensors):
    return all(t.dtype is tensors[0].dtype and t.numel() > 0 for t in tensors)


def _takes_convolution(x, weight, bias, stride, padding, dilation, groups, end):
    more = () if bias is None else (bias,)
    if end and form_of(x, weight) is torch.contiguous_format and (end != "relu" or bias is None):
        return False  # with channels first cuDNN has kernels for a bias and a ReLU; its one engine for sigmoid and tanh is the slowest
    wide = groups == 1 or weight.shape[1] >= 16  # of fewer channels a group cuDNN puts its plain loop first
    return x.dim() in (4, 5) and wide and x.dtype in (torch.float32, *HALVES) and _is_plain(x, weight, *more)


def _takes_linear(x, weight, bias, end):
    more = () if bias is None else (bias,)
    permitted = x.dtype in HALVES or (x.dtype is torch.float32 and _permits_tf32("matmul"))  # it has no engine for products without tensor cores
    return x.dim() > 1 and weight.dim() == 2 and weight.is_contiguous() and permitted and _is_plain(x, weight, *more)


def _takes_attention(q, k, v, mask, causal, scale, grouped):
    fits = all(t.dim() == 4 and t.stride(-1) == 1 and t.shape[-1] % 8 == 0 and t.shape[-1] <= 256 and min(t.stride()) > 0 for t in (q, k, v))
    shared = q.shape[1] == k.shape[1] or (grouped and q.shape[1] % k.shape[1] == 0)
    added = mask is None or (mask.dim() == 4 and mask.dtype is q.dtype and mask.stride(-1) == 1 and mask.stride(-2) > 0 and not causal)
    return fits and shared and added and q.dtype in HALVES and _is_plain(q, k, v) and q.shape[0] == k.shape[0]


def _takes_norm(x, sizes, weight):
    return weight is not None and is_row(x) and weight.dtype is x.dtype and tuple(sizes) == tuple(x.shape[x.dim() - len(sizes) :])


CUDNN = {
    "attention": (_takes_attention, _cudnn_attention),
    "convolution": (_takes_convolution, _cudnn_convolution),
    "linear": (_takes_linear, _cudnn_linear),
    "layer_norm": (
        lambda x, sizes, weight, bias, eps: bias is not None and bias.dtype is x.dtype and _takes_norm(x, sizes, weight),
        lambda library, x, sizes, weight, bias, eps: _cudnn_norm(library, "layer_norm", x, sizes, weight, bias, eps, (x, sizes, weight, bias, eps)),
    ),
    "rms_norm": (
        lambda x, sizes, weight, eps: _takes_norm(x, sizes, weight),
        lambda library, x, sizes, weight, eps: _cudnn_norm(library, "rms_norm", x, sizes, weight, None, eps, (x, sizes, weight, eps)),
    ),
}
"""Call of OWN -> does cuDNN take it, and the call of its graph."""
