"""The original with the calls that another library has kernels for made by that library: what a user gets who puts its layers in by hand."""

from __future__ import annotations

from warpwright.domains.graph import kernels

_LIGER = '''
@text


class _ByLiger(torch.overrides.TorchFunctionMode):
    """Inside, Liger makes the calls that it has kernels for."""

    made = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        read = _READ.get(function)
        call, *given = read(*args, **(kwargs or {})) if read else ("",)
        if call and given[0].is_cuda and LIGER[call][0](*given) and _liger_ops() is not None:
            self.made += 1
            return LIGER[call][1](_liger_ops(), *given)
        return function(*args, **(kwargs or {}))


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


_READ = {
    torch.softmax: lambda x, dim, dtype=None: _read_softmax(x, dim, dtype=dtype),
    torch.Tensor.softmax: lambda x, dim, dtype=None: _read_softmax(x, dim, dtype=dtype),
    torch.nn.functional.softmax: _read_softmax,
    torch.nn.functional.layer_norm: lambda x, sizes, weight=None, bias=None, eps=1e-5: ("layer_norm", x, sizes, weight, bias, eps),
    torch.nn.functional.rms_norm: lambda x, sizes, weight=None, eps=None: ("rms_norm", x, sizes, weight, eps),
    torch.nn.functional.group_norm: lambda x, groups, weight=None, bias=None, eps=1e-5: ("group_norm", x, groups, weight, bias, eps),
    torch.nn.functional.cross_entropy: _read_cross_entropy,
    torch.nn.functional.kl_div: _read_kl_div,
}


class ModelNew(Model):
    """The original, its norms, softmaxes and losses by Liger-Kernel where that has a kernel."""

    @_functools.wraps(Model.forward)
    def forward(self, *args, **kwargs):
        with _ByLiger() as by_liger:
            result = super().forward(*args, **kwargs)
        if not by_liger.made:
            raise RuntimeError("Liger-Kernel has a kernel for none of the program's calls")
        return result
'''


def liger() -> str:
    """Return the class ModelNew(Model) of the baseline `liger`, and what it needs."""
    return "\nimport functools as _functools\n\nimport torch\n" + _LIGER.replace("@text", kernels.text("liger"))
