"""Calls that FlashInfer has kernels for, made by these: attention of one sequence, RMS norm, gated halves, in 16 bits. Needs the package
flashinfer-python, and nvcc or flashinfer-jit-cache, since its kernels are compiled at the first call (a minute or two each).

    scaled_dot_product_attention(q, k, v)  ->  single_prefill_with_kv_cache(q, k, v)            silu(x[:, :h]) * x[:, h:]  ->  silu_and_mul(x)

Read at releases 0.5.3 and 0.7.4. For batches it has plans that read lengths on the host, for servers; they are not asked.
"""

# mypy: ignore-errors
from warpwright.domains.graph.kernels.others.calls import HALVES, eps_of, is_row, library_call

# --- generated programs hold what follows


def flashinfer(call, x, *rest):
    return library_call(FLASHINFER, "flashinfer", "flashinfer-python", call, x, *rest)


def _flashinfer_attention(library, q, k, v, mask, causal, scale, grouped):
    """q, k, v: [1, heads, length, size]. Keys and values are read as they are laid out, heads first."""
    if q.shape[2] == 1:
        result = library.single_decode_with_kv_cache(q[0, :, 0].contiguous(), k[0].contiguous(), v[0].contiguous(), kv_layout="HND", sm_scale=scale)
        return result[None, :, None]
    given = q[0].transpose(0, 1).contiguous(), k[0].contiguous(), v[0].contiguous()
    return library.single_prefill_with_kv_cache(*given, causal=causal, kv_layout="HND", sm_scale=scale).transpose(0, 1)[None]


def _takes_one_sequence(q, k, v, mask, causal, scale, grouped):
    sizes = {t.shape[-1] for t in (q, k, v)}
    fits = all(t.dim() == 4 and t.shape[0] == 1 and t.numel() > 0 and t.dtype is q.dtype for t in (q, k, v)) and q.dtype in HALVES
    shared = fits and (q.shape[1] == k.shape[1] or (grouped and q.shape[1] % k.shape[1] == 0))
    aligned = fits and (not causal or q.shape[2] == k.shape[2] > 1)  # its diagonal ends in the last corner, torch's begins in the first
    return shared and aligned and mask is None and len(sizes) == 1 and sizes <= {64, 128, 256}


def _is_half_row(x, pair=1):
    return x.dtype in HALVES and is_row(x) and x.shape[-1] % (8 * pair) == 0


FLASHINFER = {
    "attention": (_takes_one_sequence, _flashinfer_attention),
    "rms_norm": (
        lambda x, sizes, weight, eps: len(sizes) == 1 and weight is not None and weight.dtype is x.dtype and _is_half_row(x),
        lambda library, x, sizes, weight, eps: library.rmsnorm(x.reshape(-1, x.shape[-1]), weight, eps=eps_of(x, eps)).view(x.shape),
    ),
    "silu_halves": (lambda x: _is_half_row(x, 2), lambda library, x: library.silu_and_mul(x.contiguous())),
    "gelu_halves": (lambda x: _is_half_row(x, 2), lambda library, x: library.gelu_tanh_and_mul(x.contiguous())),
}
"""Call of OWN -> does FlashInfer take it, and the call of its kernel."""
