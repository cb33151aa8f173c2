"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from warpwright.translation.pairs.definitions.expr import Expr, Graph, Reduction, Stage, Tensor, acc, call, graph
from warpwright.translation.pairs.definitions.operators.table import H, I, J, K, N, Table, size, source

TABLE = Table()
operator = TABLE.operator


def _matmul(name: str, a_of: str, b_of: str, batch: bool = False, after: Callable[[Expr, Tensor], Expr] | None = None) -> None:
    """Register y[i, j] = after(sum over k of a * b); `a_of` is "ik" or "ki", `b_of` "kj" or "jk"."""

    @operator("matmul", name)
    def make(rng: Random) -> Graph:
        m, n, k = size(rng, 8, 96), size(rng, 8, 96), size(rng, 8, 128)
        extent, axis = {"i": m, "j": n, "k": k}, {"i": I, "j": J, "k": K}
        b = size(rng, 2, 5) if batch else 0
        lead, at = ((b,), (N,)) if batch else ((), ())
        x0 = source("x0", *lead, *(extent[d] for d in a_of))
        x1 = source("x1", *lead, *(extent[d] for d in b_of))
        bias = source("x2", n)
        product = x0[(*at, *(axis[d] for d in a_of))] * x1[(*at, *(axis[d] for d in b_of))]
        one = Reduction("s", (("k", k),), "sum", product)
        axes = ((("n", b),) if batch else ()) + (("i", m), ("j", n))
        inputs = (x0, x1, bias) if after else (x0, x1)
        return graph(name, "matmul", inputs, (Stage("y", axes, after(acc("s"), bias) if after else acc("s"), (one,)),))


_matmul("matmul", "ik", "kj")
_matmul("matmul_nt", "ik", "jk")
_matmul("matmul_tn", "ki", "kj")
_matmul("matmul_tt", "ki", "jk")
_matmul("batch_matmul", "ik", "kj", batch=True)
_matmul("batch_matmul_nt", "ik", "jk", batch=True)
_matmul("dense", "ik", "jk", after=lambda s, b: s + b[J])
_matmul("dense_relu", "ik", "jk", after=lambda s, b: call("relu", s + b[J]))
_matmul("dense_gelu", "ik", "jk", after=lambda s, b: call("gelu", s + b[J]))
_matmul("dense_tanh", "ik", "kj", after=lambda s, b: call("tanh", s + b[J]))
_matmul("dense_sigmoid", "ik", "kj", after=lambda s, b: 1.0 / (1.0 + call("exp", -1.0 * (s + b[J]))))
_matmul("matmul_scaled", "ik", "kj", after=lambda s, b: s * 0.125 + b[J] * 0.5)


@operator("matmul")
def matvec(rng: Random) -> Graph:
    """Return a matrix times a vector."""
    m, k = size(rng, 16, 400), size(rng, 16, 400)
    a, x = source("x0", m, k), source("x1", k)
    return graph("matvec", "matmul", (a, x), (Stage("y", (("i", m),), acc("s"), (Reduction("s", (("k", k),), "sum", a[I, K] * x[K]),)),))


@operator("matmul")
def vecmat(rng: Random) -> Graph:
    """Return a vector times a matrix."""
    k, n = size(rng, 16, 400), size(rng, 16, 400)
    x, a = source("x0", k), source("x1", k, n)
    return graph("vecmat", "matmul", (x, a), (Stage("y", (("j", n),), acc("s"), (Reduction("s", (("k", k),), "sum", x[K] * a[K, J]),)),))


@operator("matmul")
def gram(rng: Random) -> Graph:
    """Return x times its own transpose."""
    m, k = size(rng, 8, 80), size(rng, 8, 128)
    x = source("x0", m, k)
    return graph("gram", "matmul", (x,), (Stage("y", (("i", m), ("j", m)), acc("s"), (Reduction("s", (("k", k),), "sum", x[I, K] * x[J, K]),)),))


@operator("matmul")
def bilinear_form(rng: Random) -> Graph:
    """Return x[n, i] a[i, j] y[n, j], summed over i and j."""
    n, i, j = size(rng, 8, 64), size(rng, 8, 32), size(rng, 8, 32)
    x, a, y = source("x0", n, i), source("x1", i, j), source("x2", n, j)
    one = Reduction("s", (("i", i), ("j", j)), "sum", x[N, I] * a[I, J] * y[N, J])
    return graph("bilinear_form", "matmul", (x, a, y), (Stage("y", (("n", n),), acc("s"), (one,)),))


@operator("matmul")
def two_layers(rng: Random) -> Graph:
    """Return relu(x w) v."""
    m, k, h, n = size(rng, 8, 48), size(rng, 8, 64), size(rng, 8, 64), size(rng, 8, 48)
    x, w, v = source("x0", m, k), source("x1", k, h), source("x2", h, n)
    t = Tensor("hidden", (m, h))
    first = Stage("hidden", (("i", m), ("h", h)), call("relu", acc("s")), (Reduction("s", (("k", k),), "sum", x[I, K] * w[K, H]),))
    second = Stage("y", (("i", m), ("j", n)), acc("s"), (Reduction("s", (("k", h),), "sum", t[I, K] * v[K, J]),))
    return graph("two_layers", "matmul", (x, w, v), (first, second))
