"""A thread that returns takes part in nothing that follows, however the kernel is cut: behind barriers, in loops, switches and device functions."""

from __future__ import annotations

import numpy as np
import pytest
from executables import EXACT

from warpwright.domains import transpile

PRELUDE = """
__device__ int picked(int* s, int n, int i) {
  if (n > 3) { s[i] += 1; __syncthreads(); return s[63 - i]; }
  s[i] += 2; __syncthreads();
  return s[62 - i % 60];
}
"""

HEAD = "__shared__ int s[64]; int i = threadIdx.x; s[i] = in[i]; out[i] = 0; __syncthreads(); "

BODIES = {
    "nested": "if (n > 3) { if (n > 4) { s[i] += 1; __syncthreads(); out[i] = s[(i + 1) % 64]; return; } s[i] += 5; __syncthreads(); }"
    " out[i] = s[63 - i];",
    "loop": "for (int k = 0; k < n; ++k) { s[i] += k; __syncthreads(); if (k == 2) { out[i] = s[63 - i]; return; } __syncthreads(); } out[i] = 7;",
    "loop_of_one": "for (int k = 0; k < 4; ++k) if (in[i] == k) { out[i] = k; return; } __syncthreads(); out[i] = s[i / 2];",
    "both": "if (n > 3) { s[i] += 1; __syncthreads(); out[i] = s[63 - i]; return; } else { __syncthreads(); out[i] = 3; return; } out[i] = 7;",
    "some": "if (n > 3) { s[i] += 1; __syncthreads(); if (i < 7) { out[i] = 1; return; } s[i] += 2; } out[i] = 7 + s[i];",
    "last_of_two": "if (i > 50) { out[i] = 4; if (n > 2) return; else out[i] = 5; } else if (i > 40) { out[i] = 3; return; } __syncthreads();"
    " out[i] = s[i / 2];",
    "block": "{ if (i > 50) { out[i] = 4; { return; } } } __syncthreads(); out[i] = s[i / 2];",
    "switch_with_barriers": "switch (n) { case 5: s[i] += 1; __syncthreads(); out[i] = s[63 - i]; return; case 6: out[i] = 3; break;"
    " default: out[i] = 4; __syncthreads(); out[i] += s[3]; return; } out[i] = 7;",
    "switch_of_memory": "switch (in[i]) { case 1: out[i] = 5; return; case 2: return; default: break; } __syncthreads(); out[i] = 7 + s[i / 2];",
    "function": "out[i] = picked(s, n, i) + 100;",
    "do_once": "do { s[i] += 1; __syncthreads(); if (n > 3) return; out[i] = s[3]; __syncthreads(); } while (0); out[i] = 7;",
    "go_to": "if (n > 3) goto done; s[i] += 1; __syncthreads(); out[i] = s[63 - i]; done: out[i] += 7;",
    "continue_in_switch": "for (int k = 0; k < n; ++k) { switch (k) { case 1: out[i] += 5; continue; case 2: if (i < 7) return; case 4: break; }"
    " out[i] += k; } out[i] += 100;",
    "lanes": "int v = in[i]; if (i < 32) { v += __shfl_xor_sync(~0u, v, 1); if (i < 16) { out[i] = v; return; } v += 1; } out[i] = 7 + v;",
}  # fmt: skip

NO_BARRIER = "int i = threadIdx.x; switch (in[i]) { case 1: out[i] = 5; return; case 2: return; default: break; } out[i] = 7;"


@pytest.mark.compiler
def test_a_thread_that_returned_takes_part_in_nothing_that_follows() -> None:
    bodies = {name: HEAD + body for name, body in BODIES.items()} | {"no_barrier": NO_BARRIER}
    text = PRELUDE + "\n".join(f"__global__ void {name}(const int* in, int* out, int n) {{ {body} }}" for name, body in bodies.items())
    programs = {tier: transpile.compile_text(text, tier=tier) for tier in ("fibers", "loops", "vectors")}
    loaded = {tier: program.load(("-O0", *EXACT)) for tier, program in programs.items()}
    values = np.random.default_rng(0).integers(0, 9, 64).astype(np.int32)
    for name in bodies:
        for n in (2, 4, 5, 6):
            answers = {tier: np.full(64, -1, np.int32) for tier in loaded}
            for tier, kernels in loaded.items():
                kernels[name][1, 64](values, answers[tier], n)
            for tier, answer in answers.items():
                assert np.array_equal(answer, answers["fibers"]), (name, tier, n, programs[tier].kernels[name].reason)
    left = {name for name, info in programs["vectors"].kernels.items() if info.tier == "fibers"}
    assert left == {"switch_of_memory", "go_to", "continue_in_switch"}  # kept as text: memory that it reads, gotos, cases that run on
