"""Inline PTX against numpy, instruction by instruction; what is not of the common kind stays, and is refused."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from warpwright.domains import transpile
from warpwright.domains.transpile.frontend import ptx

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")

U = np.uint32
MASK = np.uint64(0xFFFFFFFF)


def wide(a: np.ndarray) -> np.ndarray:
    return a.astype(np.uint64)


def signed(a: np.ndarray) -> np.ndarray:
    return a.view(np.int32)


def permuted(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return what prmt gives: a byte for each four bits of c, the sign of it where the fourth is set."""
    whole, out = wide(a) | wide(b) << np.uint64(32), wide(a) * np.uint64(0)
    for place in range(4):
        chosen = wide(c) >> np.uint64(4 * place)
        byte = whole >> (np.uint64(8) * (chosen & np.uint64(7))) & np.uint64(255)
        sign = np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0))
        out |= np.where(chosen & np.uint64(8), sign, byte) << np.uint64(8 * place)
    return out.astype(U)


def summed(a: np.ndarray, by: int, width: int) -> np.ndarray:
    """Return each value added to the one `by` lanes away in its segment, or alone where there is none."""
    at = np.arange(len(a))
    found = (at % width + by >= 0) & (at % width + by < width)
    return np.where(found, a[np.clip(at + by, 0, len(a) - 1)] + a, a)


UNSIGNED = {
    "bfi.b32 %0, %1, %2, 4, 9;": lambda a, b, c: (b & ~U(511 << 4)) | (a & U(511)) << U(4),
    "bfi.b32 %0, %1, %2, 28, 9;": lambda a, b, c: (b & U(0x0FFFFFFF)) | a << U(28),
    "bfi.b32 %0, %1, %2, 0, 32;": lambda a, b, c: a,
    "bfi.b32 %0, %1, %2, 32, 4;": lambda a, b, c: b,
    "prmt.b32 %0, %1, %2, 0x98BA;": lambda a, b, c: permuted(a, b, np.full_like(a, 0x98BA)),
    "prmt.b32 %0, %1, %2, %3;": permuted,
    "{ .reg .u32 t; .reg .pred p; shfl.sync.up.b32 t|p, %1, 3, 0x1800, 0xffffffff; @p add.u32 t, t, %1; mov.u32 %0, t; }":
        lambda a, b, c: summed(a, -3, 8),
    "{ .reg .u32 t, m; .reg .pred p; mov.u32 m, 0x181f; shfl.sync.down.b32 t|p, %1, 2, m, 0xffffffff; @p add.u32 t, t, %1; mov.u32 %0, t; }":
        lambda a, b, c: summed(a, 2, 8),
    "{ .reg .u32 t; .reg .pred p; shfl.up.b32 t|p, %1, 1, 0; @p add.u32 t, t, %1; mov.u32 %0, t; }": lambda a, b, c: summed(a, -1, 32),
    "{ .reg .u32 t; .reg .pred p; mov.u32 t, %1; shfl.sync.down.b32 t|p, t, 7, 0x1f, -1; @!p mov.u32 t, 5; mov.u32 %0, t; }":
        lambda a, b, c: np.where(np.arange(len(a)) % 32 < 25, np.roll(a, -7), U(5)),
    "shfl.sync.up.b32 %0, %1, 33, 0, -1;": lambda a, b, c: np.where(np.arange(len(a)) % 32 < 1, a, np.roll(a, 1)),
    "{ .reg .u32 t; .reg .pred p; mov.u32 t, 34; shfl.sync.down.b32 t|p, %1, t, 0x1c03, -1; @!p mov.u32 t, 5; mov.u32 %0, t; }":
        lambda a, b, c: np.where(np.arange(len(a)) % 4 < 2, np.roll(a, -2), U(5)),
    "shfl.sync.idx.b32 %0, %1, 2, 0x1c03, 0xffffffff;": lambda a, b, c: a.reshape(-1, 4)[:, 2].repeat(4),
    "{ .reg .u64 w; .reg .u32 lo, hi; mul.wide.u32 w, %1, %2; mov.b64 {lo, hi}, w; mov.b64 w, {hi, lo}; shr.u64 w, w, 32; cvt.u32.u64 %0, w; }":
        lambda a, b, c: a * b,
    "{ .reg .f64 d; .reg .u32 lo, hi; cvt.rn.f64.u32 d, %1; mov.b64 {lo, hi}, d; mov.b64 d, {lo, hi}; add.f64 d, d, d; mov.b64 {lo, %0}, d; }":
        lambda a, b, c: (2.0 * a).view(np.uint64) >> np.uint64(32),
    "{ .reg .u16 lo, hi; mov.b32 {lo, hi}, %1; mov.b32 %0, {hi, lo}; }": lambda a, b, c: a >> U(16) | a << U(16),
    "add.u32 %0, %1, %2;": lambda a, b, c: a + b,
    "sub.s32 %0, %1, %2;": lambda a, b, c: a - b,
    "mul.lo.u32 %0, %1, %2;": lambda a, b, c: a * b,
    "mul.hi.u32 %0, %1, %2;": lambda a, b, c: (wide(a) * wide(b) >> np.uint64(32)).astype(U),
    "mad.lo.s32 %0, %1, %2, %3;": lambda a, b, c: a * b + c,
    "and.b32 %0, %1, %2;": lambda a, b, c: a & b,
    "xor.b32 %0, %1, %2;": lambda a, b, c: a ^ b,
    "not.b32 %0, %1;": lambda a, b, c: ~a,
    "shl.b32 %0, %1, 7;": lambda a, b, c: a << U(7),
    "shl.b32 %0, %1, 40;": lambda a, b, c: a * U(0),
    "shr.u32 %0, %1, 5;": lambda a, b, c: a >> U(5),
    "shr.s32 %0, %1, 5;": lambda a, b, c: (signed(a) >> 5).view(U),
    "min.s32 %0, %1, %2;": lambda a, b, c: np.minimum(signed(a), signed(b)).view(U),
    "max.u32 %0, %1, %2;": lambda a, b, c: np.maximum(a, b),
    "popc.b32 %0, %1;": lambda a, b, c: np.array([bin(int(v)).count("1") for v in a], U),
    "clz.b32 %0, %1;": lambda a, b, c: np.array([32 - int(v).bit_length() for v in a], U),
    "brev.b32 %0, %1;": lambda a, b, c: np.array([int(f"{int(v):032b}"[::-1], 2) for v in a], U),
    "bfe.u32 %0, %1, 4, 9;": lambda a, b, c: (a >> U(4)) & U(511),
    "lop3.b32 %0, %1, %2, %3, 0xE8;": lambda a, b, c: (a & b) | (a & c) | (b & c),
    "lop3.b32 %0, %1, %2, %3, 0x96;": lambda a, b, c: a ^ b ^ c,
    "prmt.b32 %0, %1, %2, 0x5410;": lambda a, b, c: (a & U(0xFFFF)) | (b << U(16)),
    "{ .reg .pred p; setp.lt.u32 p, %1, %2; selp.b32 %0, %3, %1, p; }": lambda a, b, c: np.where(a < b, c, a),
    "{\n .reg .pred p;\n .reg .u32 t;\n setp.ge.s32 p, %1, %2;\n mov.u32 t, 17;\n mov.u32 %0, %3;\n @p mov.u32 %0, t;\n}": lambda a, b, c: np.where(
        signed(a) >= signed(b), U(17), c
    ),
    "{ .reg .u64 t; mul.wide.u32 t, %1, %2; shr.u64 t, t, 16; cvt.u32.u64 %0, t; }": lambda a, b, c: (
        (wide(a) * wide(b) >> np.uint64(16)) & MASK
    ).astype(U),
    "bfe.u32 %0, %1, 40, 9;": lambda a, b, c: a * U(0),
    "mov.u32 %0, %%tid.x;": lambda a, b, c: np.arange(len(a), dtype=U),
    "mov.u32 %0, %%laneid;": lambda a, b, c: np.arange(len(a), dtype=U) % U(32),
    "mov.u32 %0, %%lanemask_lt;": lambda a, b, c: (U(1) << (np.arange(len(a), dtype=U) % U(32))) - U(1),
    "shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;": lambda a, b, c: a.reshape(-1, 2)[:, ::-1].reshape(-1),
}  # fmt: skip

FLOATS = {
    "fma.rn.f32 %0, %1, %2, %3;": lambda a, b, c: (a.astype(np.float64) * b + c).astype(np.float32),
    "add.rn.ftz.f32 %0, %1, %2;": lambda a, b, c: a + b,
    "mul.f32 %0, %1, %2;": lambda a, b, c: a * b,
    "shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;": lambda a, b, c: a.reshape(-1, 2)[:, ::-1].reshape(-1),
    "{ .reg .pred p, q; setp.ne.f32 p, %1, %1; not.pred q, p; selp.f32 %0, %2, %3, q; }": lambda a, b, c: b,
    "{ .reg .s32 t; mov.b32 %0, 0f7F000000; cvt.rzi.s32.f32 t, %0; cvt.rn.f32.s32 %0, t; }": lambda a, b, c: np.full_like(a, 2147483647),
    "neg.f32 %0, %1;": lambda a, b, c: -a,
    "abs.f32 %0, %1;": lambda a, b, c: np.abs(a),
    "max.f32 %0, %1, %2;": lambda a, b, c: np.maximum(a, b),
    "rcp.approx.ftz.f32 %0, %1;": lambda a, b, c: 1 / a,
    "sqrt.rn.f32 %0, %2;": lambda a, b, c: np.sqrt(b),
    "rsqrt.approx.f32 %0, %2;": lambda a, b, c: 1 / np.sqrt(b),
    "ex2.approx.f32 %0, %1;": lambda a, b, c: np.exp2(a),
    "lg2.approx.f32 %0, %2;": lambda a, b, c: np.log2(b),
    "tanh.approx.f32 %0, %1;": lambda a, b, c: np.tanh(a),
    "mov.b32 %0, 0f3FC00000;": lambda a, b, c: np.full_like(a, 1.5),
    "{ .reg .s32 t; cvt.rzi.s32.f32 t, %1; cvt.rn.f32.s32 %0, t; }": lambda a, b, c: np.trunc(a),
    "{ .reg .u32 t; mov.b32 t, %1; xor.b32 t, t, 0x80000000; mov.b32 %0, t; }": lambda a, b, c: -a,
}


def kernel(instruction: str, kind: str, letter: str) -> str:
    return f"""
__global__ void k({kind}* out, const {kind}* a, const {kind}* b, const {kind}* c) {{
  int i = threadIdx.x;
  {kind} d;
  asm volatile("{instruction.replace(chr(10), chr(92) + "n")}" : "={letter}"(d) : "{letter}"(a[i]), "{letter}"(b[i]), "{letter}"(c[i]));
  out[i] = d;
}}"""


def many(instructions: list[str], kind: str, letter: str) -> dict[str, object]:
    """Compile all of them in one library."""
    texts = [re.sub(r"\bk\(", f"k{number}(", kernel(text, kind, letter)) for number, text in enumerate(instructions)]
    return transpile.compile_text("\n".join(texts)).load()


def test_integers() -> None:
    generator = np.random.default_rng(1)
    a, b, c = (generator.integers(0, 1 << 32, 64, dtype=np.uint64).astype(U) for _ in range(3))
    kernels = many(list(UNSIGNED), "unsigned int", "r")
    for number, (instruction, expected) in enumerate(UNSIGNED.items()):
        out = np.zeros(64, U)
        kernels[f"k{number}"][1, 64](out, a, b, c)
        assert np.array_equal(out, expected(a, b, c).astype(U)), instruction


def test_floats() -> None:
    generator = np.random.default_rng(2)
    a, c = (generator.uniform(-9, 9, 64).astype(np.float32) for _ in range(2))
    b = generator.uniform(0.5, 9, 64).astype(np.float32)
    kernels = many(list(FLOATS), "float", "f")
    for number, (instruction, expected) in enumerate(FLOATS.items()):
        out = np.zeros(64, np.float32)
        kernels[f"k{number}"][1, 64](out, a, b, c)
        np.testing.assert_allclose(out, expected(a, b, c), rtol=2e-6, err_msg=instruction)


def test_memory_through_global_addresses() -> None:
    text = """
__global__ void k(float* out, const float* in) {
  float x, y, z, w;
  const float* p = in + 4 * threadIdx.x;
  asm("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x), "=f"(y), "=f"(z), "=f"(w) : "l"(p));
  asm volatile("st.global.f32 [%0+4], %1;" :: "l"(out + 2 * threadIdx.x), "f"(x + y + z + w) : "memory");
}
__global__ void chased(unsigned* at, void** from) {
  void **p = from + threadIdx.x;
  for (int i = 0; i < 3; ++i) asm volatile("ld.global.nc.b64 %0, [%0];" : "+l"(p) : : "memory");
  at[threadIdx.x] = (unsigned)(p - from);
}"""
    data, out = np.arange(32, dtype=np.float32), np.zeros(16, np.float32)
    loaded = transpile.compile_text(text).load()
    loaded["k"][1, 8](out, data)
    links, at = np.zeros(8, np.uint64), np.zeros(8, np.uint32)  # each holds the next one's address
    links[:] = links.ctypes.data + 8 * ((np.arange(8) + 3) % 8)
    loaded["chased"][1, 8](at, links)
    assert at.tolist() == [(i + 9) % 8 for i in range(8)]
    assert np.array_equal(out.reshape(8, 2)[:, 1], data.reshape(8, 4).sum(1)) and not out.reshape(8, 2)[:, 0].any()


def test_lines_stay_where_they_are() -> None:
    text = 'int a;\nasm("add.u32 %0, %1, 1;"\n    : "=r"(x)\n    : "r"(y));\nint b;\n'
    made = ptx.translate(text)
    assert "asm" not in made and made.split("\n")[4] == "int b;" and made.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        'asm("add.rz.f32 %0, %1, %2;" : "=f"(x) : "f"(y), "f"(z));', 'asm("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(y));',
        'asm("wgmma.fence.sync.aligned;");', 'asm("mov.b64 {%0, %1}, %2;" : "=r"(x), "=r"(y) : "f"(z));', 'asm("movl %eax, %0" : "=r"(x));',
        'asm volatile("" ::: "memory");', 'asm("add.f16x2 %0, %1, %2;" : "=r"(x) : "r"(y), "r"(z));', 'asm("not %0" : "+r"(x));',
        'asm("min.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(y), "f"(z));', 'asm("add.sat.s32 %0, %1, %2;" : "=r"(x) : "r"(y), "r"(z));',
        'asm("mov.b64 %0, %1;" : "=d"(x) : "l"(y));', 'asm("prmt.b32.f4e %0, %1, %2, 1;" : "=r"(x) : "r"(y), "r"(z));',
        'asm("tanh.approx.f16x2 %0, %1;" : "=r"(x) : "r"(y));', 'asm("mov.b64 %0, {%1, %2, %3, %3};" : "=l"(x) : "h"(y), "h"(z));',
        'puts("asm(\\"trap;\\");");', '// asm("trap;");',
    ],
)  # fmt: skip
def test_what_is_not_understood_is_left_alone(text: str) -> None:
    assert ptx.translate(text) == text


def test_what_is_known_when_it_runs_is_taken_by_the_sanitizer() -> None:
    """A selector, and the lanes of a shuffle, that a register holds."""
    texts = [kernel(f"{one}.b32 %0, %1, %2, %3{mask};", "unsigned", "r") for one, mask in (("prmt", ""), ("shfl.sync.up", ", -1"))]
    for text in texts:
        assert transpile.compile_text(text, sanitize=True).kernels["k"].tier == "fibers"
