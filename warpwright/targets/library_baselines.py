"""The original with the calls that another library has kernels for made by that library: what a user gets who puts its layers in by hand."""

from __future__ import annotations

from warpwright.domains.graph.libraries import Library

_TEXT = '''
import functools as _functools

@text


class _ByLibrary(torch.overrides.TorchFunctionMode):
    """Inside, the library makes the calls that it has kernels for, where no gradients are asked for."""

    made = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        read = _READ.get(function)
        call, *given = read(*args, **(kwargs or {})) if read else ("",)
        if call not in @table or not given[0].is_cuda or _wants_gradients(given) or not @table[call][0](*given):
            return function(*args, **(kwargs or {}))
        self.made += 1
        return @name(call, *given)


def _wants_gradients(given):
    return torch.is_grad_enabled() and any(isinstance(one, torch.Tensor) and one.requires_grad for one in given)


def _read_softmax(x, dim=None, _stacklevel=3, dtype=None):
    return ("softmax", x, dim) if dim is not None and dtype in (None, x.dtype) else ("",)


def _read_cross_entropy(
    x, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    plain = weight is None and size_average is None and reduce is None and reduction in ("mean", "sum")
    return ("cross_entropy", x, target, 1 if reduction == "mean" else 2, ignore_index, label_smoothing) if plain else ("",)


def _read_kl_div(x, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    plain = size_average is None and reduce is None and reduction in ("mean", "sum")
    return ("kl_div", x, target, 1 if reduction == "mean" else 2, log_target) if plain else ("",)


def _read_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    return ("attention", query, key, value, attn_mask, is_causal, scale, enable_gqa) if not dropout_p else ("",)


def _read_convolution(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    if isinstance(padding, str):
        return ("",)
    stride, padding, dilation = (
        [n] * (weight.dim() - 2) if isinstance(n, int) else list(n) * (weight.dim() - 2 if len(n) == 1 else 1) for n in (stride, padding, dilation)
    )
    return "convolution", input, weight, bias, stride, padding, dilation, groups, ""


def _read_top_k(x, k, dim=-1, largest=True, sorted=True):
    return ("top_k", x, k) if largest and x.dim() and dim % x.dim() == x.dim() - 1 else ("",)


_READ = {
    torch.softmax: lambda x, dim, dtype=None: _read_softmax(x, dim, dtype=dtype),
    torch.Tensor.softmax: lambda x, dim, dtype=None: _read_softmax(x, dim, dtype=dtype),
    torch.nn.functional.softmax: _read_softmax,
    torch.nn.functional.layer_norm: lambda x, sizes, weight=None, bias=None, eps=1e-5: ("layer_norm", x, sizes, weight, bias, eps),
    torch.nn.functional.rms_norm: lambda x, sizes, weight=None, eps=None: ("rms_norm", x, sizes, weight, eps),
    torch.nn.functional.group_norm: lambda x, groups, weight=None, bias=None, eps=1e-5: ("group_norm", x, groups, weight, bias, eps),
    torch.nn.functional.cross_entropy: _read_cross_entropy,
    torch.nn.functional.kl_div: _read_kl_div,
    torch.nn.functional.linear: lambda input, weight, bias=None: ("linear", input, weight, bias, ""),
    torch.nn.functional.conv2d: _read_convolution,
    torch.nn.functional.conv3d: _read_convolution,
    torch.nn.functional.scaled_dot_product_attention: _read_attention,
    torch.topk: _read_top_k,
    torch.Tensor.topk: _read_top_k,
}
"""Function -> the call of OWN that it is with these arguments, and what that is given."""


class ModelNew(Model):
    """The original, its calls by @package where that has a kernel."""

    @_functools.wraps(Model.forward)
    def forward(self, *args, **kwargs):
        with _ByLibrary() as by_library:
            result = super().forward(*args, **kwargs)
        if not by_library.made:
            raise RuntimeError("@package has a kernel for none of the program's calls")
        return result
'''


def text(library: Library) -> str:
    """Return the class ModelNew(Model) of a library's baseline, and what it needs."""
    names = {"@text": library.text, "@table": library.name.upper(), "@name": library.name, "@package": library.package}
    found = _TEXT
    for mark, name in names.items():
        found = found.replace(mark, name)
    return found
