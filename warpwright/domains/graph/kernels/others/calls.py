"""What generated programs share that call another library's kernels: each call by torch, and the choice between the two."""

# mypy: ignore-errors
# --- generated programs hold what follows

import importlib
import warnings

import torch

_LIBRARIES = {}
"""Modules by name; None where one is missing."""


def library_module(name, package):
    if name not in _LIBRARIES:
        try:
            _LIBRARIES[name] = importlib.import_module(name)
        except ImportError as error:
            _LIBRARIES[name] = None
            warnings.warn(f"torch makes the calls that are of {package}: {error} (pip install {package})", stacklevel=4)
    return _LIBRARIES[name]


def library_call(table, module, package, call, x, *rest):
    """Return what a call of OWN gives: by the library's kernel on a GPU if it takes it, else by torch."""
    fits, made = table[call]
    library = library_module(module, package) if x.is_cuda and fits(x, *rest) and _is_aligned(x, *rest) else None
    if library is None:
        return OWN[call](x, *rest)
    if not torch.is_grad_enabled():  # torch gives no memory of parameters that ask for gradients to others
        x, *rest = (one.detach() if isinstance(one, torch.Tensor) else one for one in (x, *rest))
    return made(library, x, *rest)


def _is_aligned(*given):
    """Do tensors begin at multiples of 16 bytes, as kernels that copy vectors expect without asking?"""
    return all(one.data_ptr() % 16 == 0 for one in given if isinstance(one, torch.Tensor))


def _own_cross_entropy(x, target, reduction, ignored, smoothing):
    return torch.nn.functional.cross_entropy(x, target, None, ignore_index=ignored, reduction=REDUCTIONS[reduction], label_smoothing=smoothing)


def _own_attention(q, k, v, mask, causal, scale, grouped):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, 0.0, causal, scale=scale, enable_gqa=grouped)


def _own_convolution(x, weight, bias, stride, padding, dilation, groups, end):
    convolve = torch.nn.functional.conv2d if x.dim() == 4 else torch.nn.functional.conv3d
    return ENDS[end](convolve(x, weight, bias, stride, padding, dilation, groups)).contiguous(memory_format=form_of(x, weight))


def form_of(x, weight):
    """Return the memory format of a convolution's result on a GPU: channels last if they are in an operand."""
    last = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
    return last if any(t.is_contiguous(memory_format=last) and not t.is_contiguous() for t in (x, weight)) else torch.contiguous_format


REDUCTIONS = ("none", "mean", "sum")
"""By ATen's numbers."""

ENDS = {
    "": lambda x: x,
    "relu": torch.relu,
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}
"""What a convolution or a product may end with."""

OWN = {
    "softmax": lambda x, dim: torch.softmax(x, dim),
    "layer_norm": lambda x, sizes, weight, bias, eps: torch.nn.functional.layer_norm(x, sizes, weight, bias, eps),
    "rms_norm": lambda x, sizes, weight, eps: torch.nn.functional.rms_norm(x, sizes, weight, eps),
    "group_norm": lambda x, groups, weight, bias, eps: torch.nn.functional.group_norm(x, groups, weight, bias, eps),
    "silu_mul": lambda a, b: torch.nn.functional.silu(a) * b,
    "gelu_mul": lambda a, b: torch.nn.functional.gelu(a, approximate="tanh") * b,
    "silu_halves": lambda x: torch.nn.functional.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1],
    "gelu_halves": lambda x: torch.nn.functional.gelu(x.chunk(2, -1)[0], approximate="tanh") * x.chunk(2, -1)[1],
    "cross_entropy": _own_cross_entropy,
    "kl_div": lambda x, target, reduction, logarithms: torch.nn.functional.kl_div(
        x, target, reduction=REDUCTIONS[reduction], log_target=logarithms
    ),
    "top_k": lambda x, k: torch.topk(x, k),
    "attention": _own_attention,
    "convolution": _own_convolution,
    "linear": lambda x, weight, bias, end: ENDS[end](torch.nn.functional.linear(x, weight, bias)),
}
"""Call -> the same by torch."""

HALVES = (torch.float16, torch.bfloat16)


def is_row(x, most=65536):
    """Is the last dimension a row of numbers that a kernel of a library takes?"""
    return x.dim() > 0 and 0 < x.shape[-1] <= most and x.numel() > 0 and x.dtype in (torch.float32, *HALVES)


def eps_of(x, eps):
    """Return an RMS norm's epsilon; torch's own is that of the type it sums in, float32 for halves."""
    return torch.finfo(torch.promote_types(x.dtype, torch.float32)).eps if eps is None else eps
