"""Exchanges in shared memory: sorting networks and butterflies against one fiber a thread, and what is left as it is."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile

BITONIC = """__global__ void {name}(const {type}* __restrict__ a, {type}* __restrict__ out, int n) {{
  __shared__ {type} s[512];
  {index} t = threadIdx.x, base = blockIdx.x * blockDim.x;
  for (int i = t; i < 512; i += blockDim.x) s[i] = 0;
  __syncthreads();
  s[t] = a[base + t];
  __syncthreads();
  for ({index} k = 2; k <= blockDim.x; k *= 2)
    for ({index} j = k / 2; j > 0; j /= 2) {{
      {body}
      __syncthreads();
    }}
  out[base + t] = s[t];
}}"""

NETWORKS = {
    "values": "int other = t ^ j; if (other > t) { float a = s[t], b = s[other]; if ((a > b) == ((t & k) == 0)) { s[t] = b; s[other] = a; } }",
    "temporary": "unsigned other = t ^ j; if (other > t) { if ((s[t] > s[other]) == !(k & t)) { int v = s[t]; s[t] = s[other]; s[other] = v; } }",
    "in place": "if ((t ^ j) > t && (s[t] > s[t ^ j]) == ((t & k) == 0)) { float v = s[t]; s[t] = s[t ^ j]; s[t ^ j] = v; }",
    "one side": "float v = s[t], w = s[t ^ j]; __syncthreads(); if ((v < w) == (((t & j) == 0) == ((t & k) == 0))) s[t] = v; else s[t] = w;",
    "butterfly": "if ((t & j) == 0) { float v = s[t], w = s[t ^ j]; s[t] = v + w; s[t ^ j] = v - w; }",
    "any distance": "int d = j + (k & 12), other = t ^ d; if (other > t && other < blockDim.x) { float a = s[t], b = s[other]; if (a > b) { s[t] = b; s[other] = a; } }",  # noqa: E501
}


KINDS = {"float": (np.float32, "int"), "int": (np.int32, "unsigned"), "double": (np.float64, "int")}
"""Of the elements, with the type of the index."""


def kernel(network: str, kind: str) -> str:
    return f"{network}_{kind}".replace(" ", "_")


@pytest.fixture(scope="module")
def tiers() -> list[dict[str, transpile.LoadedKernel]]:
    """Every network for every kind, by vectors and by fibers."""
    texts = [
        BITONIC.format(name=kernel(network, kind), type=kind, index=index, body=body.replace("float", kind))
        for network, body in NETWORKS.items() for kind, (_, index) in KINDS.items()
    ]  # fmt: skip
    return [transpile.compile_text("\n".join(texts), tier=tier).load() for tier in ("vectors", "fibers")]


@pytest.mark.compiler
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_agree_with_fibers(name: str, tiers: list[dict[str, transpile.LoadedKernel]]) -> None:
    rng = np.random.default_rng(0)
    for kind, (numpy_kind, _) in KINDS.items():
        a = (rng.standard_normal(4 * 512) * 99).astype(numpy_kind)
        for block in (512, 64, 8, 24):
            seen, expected = (np.zeros_like(a) for _ in range(2))
            for made, out in zip(tiers, (seen, expected), strict=True):
                made[kernel(name, kind)][4, block](a, out, 0)
            assert np.array_equal(seen, expected), (name, kind, block)


def source(body: str) -> str:
    return transpile.compile_text(BITONIC.format(name="k", type="float", index="int", body=body)).source.partition("k_block")[2]


def test_distances_that_are_powers_of_two_cut_rows() -> None:
    text = source(NETWORKS["values"])
    assert "ww::is_bit((long)(j), 8)" in text and "continue;" in text and "ww::chosen(taken, b, s[t])" in text


def test_close_pairs_are_a_loop_over_pairs_of_stretches() -> None:
    """Distances of 1, 2 and 4 are known to the compiler there; rows that are not whole pairs, and sums that begin inside of one, stay general."""
    for name in ("values", "butterfly"):
        assert "ww::at_distance((long)(j), [&](const auto distance) {" in source(NETWORKS[name]), name
    text = transpile.compile_text(BITONIC.format(name="k", type="int", index="unsigned", body=NETWORKS["temporary"])).source
    text = text.partition("k_block")[2]
    for exchange in (source(NETWORKS["in place"]), text):  # the guard of the threads stands outside, the comparison of values has no branch
        assert "ww::at_distance" in exchange and "ww::chosen(taken, v, s[" in exchange and "continue;" in exchange
    assert "dim_x % (2 * (long)(j)) == 0 && ww::is_bit((long)(k), 2 * (long)(j))" in source(NETWORKS["values"])
    shifted = NETWORKS["butterfly"].replace("t & j", "(t + 8) & j").replace("t ^ j", "(t + 8) ^ j")
    assert "(((0) + 8)) % (2 * (long)(j)) == 0" in source(shifted)
    assert "ww::at_distance" not in source(NETWORKS["one side"])  # every thread takes part


@pytest.mark.parametrize("body", [
    "if (a[t] > s[t]) s[t] = a[t];",  # a value that is read only if it is needed
    "if (s[t] > 0.f) s[t + 1 < n ? t : 0] = 1.f;",  # another place
    "if (n > 0 && s[t] > 0.f) s[t] = 1.f;",  # read only if n > 0
    "if (s[t] > 0.f) s[t] = 1.0;",  # of another type
    "int h = (int)a[t]; if (s[h] > 0.f) s[h] = 1.f;",  # threads may share the place
    "if (out[t] > 0.f) out[t] = 1.f;",  # other blocks may write it
])  # fmt: skip
def test_other_branches_stay(body: str) -> None:
    assert "ww::chosen" not in source(body)


@pytest.mark.compiler
def test_rows_of_a_block_are_sorted_apart() -> None:
    """Pairs lie in rows of threads: with several rows in a block each has its own, also where a row begins in the middle of the numbers."""
    text = """__global__ void k(const float* a, float* out, int n) {
      __shared__ float s[8][64];
      int t = threadIdx.x, r = threadIdx.y, at = (blockIdx.x * blockDim.y + r) * blockDim.x + t;
      s[r][t] = a[at];
      __syncthreads();
      for (int k = 2; k <= blockDim.x; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
          if (((t + n) ^ j) > t + n && (s[r][t] > s[r][((t + n) ^ j) - n]) == ((t & k) == 0)) {
            float v = s[r][t]; s[r][t] = s[r][((t + n) ^ j) - n]; s[r][((t + n) ^ j) - n] = v;
          }
          __syncthreads();
        }
      out[at] = s[r][t];
    }"""
    a = np.random.default_rng(0).standard_normal(2 * 8 * 64).astype(np.float32)
    loaded = transpile.compile_text(text, tier="vectors").load()
    for width, n in ((64, 0), (32, 64), (8, 0), (2, 8)):
        out = np.zeros_like(a)
        loaded["k"][len(a) // 8 // width, (width, 8)](a, out, n)
        assert np.array_equal(out.reshape(-1, width), np.sort(a.reshape(-1, width), 1)), width
