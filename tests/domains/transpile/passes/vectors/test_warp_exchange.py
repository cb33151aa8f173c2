"""Shuffles and what is computed with them, for a whole warp at once: each operation, way and order gives what fibers give, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile

CHANGES = {
    "sum": ("v += {s}", "fiu"), "product": ("v *= {s}", "fiu"), "sum_behind": ("v = {s} + v", "fiu"), "largest": ("v = fmaxf(v, {s})", "f"),
    "smallest_behind": ("v = fminf({s}, v)", "f"), "max": ("v = max({s}, v)", "fiu"), "min": ("v = min(v, {s})", "fiu"), "and": ("v &= {s}", "iu"),
    "or": ("v = v | {s}", "iu"), "xor": ("v ^= {s}", "iu"), "difference": ("v -= {s}", "fi"), "twice": ("v = {s} + {s}", "fi"),
}  # fmt: skip
TYPES = {"f": ("float", np.float32), "i": ("int", np.int32), "u": ("unsigned", np.uint32)}
WAYS = {"xor": "__shfl_xor_sync(0xffffffffu, v, o)", "down": "__shfl_down_sync(0xffffffffu, v, o)", "up": "__shfl_up_sync(0xffffffffu, v, o)"}
NAMES = [f"{change}_{way}_{code}" for change, (_, codes) in CHANGES.items() for way in WAYS for code in codes]


def kernel(name: str) -> str:
    """Return the kernel: the change in a loop, then twice without one, then at a distance that is known when it runs."""
    change, way, code = name.rsplit("_", 2)
    text, shuffle = CHANGES[change][0], WAYS[way]
    at = lambda distance: text.format(s=shuffle.replace("o)", f"{distance})")) + ";"  # noqa: E731
    kind = TYPES[code][0]
    return f"""__global__ void {name}(const {kind}* x, {kind}* y, int far) {{
  {kind} v = x[threadIdx.x];
  for (int o = 16; o > 0; o >>= 1) {at("o")}
  y[threadIdx.x] = v;
  v = x[threadIdx.x];
  {at(8)} {at(3)}
  y[threadIdx.x + 128] = v;
  {at("far")}
  y[threadIdx.x + 256] = v;
}}
"""


@pytest.fixture(scope="module")
def tiers() -> list[dict[str, transpile.LoadedKernel]]:
    text = "".join(map(kernel, NAMES))
    return [transpile.compile_text(text, tier=tier).load() for tier in ("vectors", "fibers")]


@pytest.mark.compiler
@pytest.mark.parametrize("name", NAMES)
def test_each_operation_gives_what_fibers_give(name: str, tiers: list[dict[str, transpile.LoadedKernel]]) -> None:
    rng, kind = np.random.default_rng(0), TYPES[name[-1]][1]
    x = rng.standard_normal(128).astype(kind) if kind is np.float32 else rng.integers(0, 1 << 31, 128).astype(kind)
    if kind is np.float32:
        x[[3, 40, 41, 77]] = np.nan, 0.0, -0.0, np.inf
    for far in (1, 7, 16, 31):
        seen = []
        for made in tiers:
            y = np.zeros(384, kind)
            made[name][1, 128](x, y, far)
            seen.append(y)
        np.testing.assert_array_equal(*seen, f"{name} {far}")


def test_a_sum_over_a_warp_is_done_for_the_whole_warp() -> None:
    source = transpile.compile_text(kernel("sum_xor_f")).source
    assert "ww::lanes_joined(v_l, taken_of_warp, v_l, ww::Sum());" in source and "ww::lanes_same(v_l, offered_l);" in source
    assert "ww::lanes_joined(v_l" not in transpile.compile_text(kernel("twice_xor_f")).source
