"""Blocks in another shape, sums as explicit vectors, tiles of a thread, borders and trees.

Their forms, and their answers against one fiber a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = "__global__ void {name}(const float* a, const float* b, float* out, int n, int m) {{ "
KEPT = "if (at < 4096) out[at] = "


MULTIPLY = """template <int D, int U, int V, int M, int N> __device__ void multiply(float* left, float* right, float* sums, const float* p, const float* q, int y, unsigned x) {
  for (unsigned k = 0; k < D; ++k) {
    for (unsigned u = 0; u < U; ++u) for (unsigned i = 0; i < M; ++i) left[u * M + i] = p[k * 128 + y * M + u * 32 + i];
    for (unsigned v = 0; v < V; ++v) for (unsigned i = 0; i < N; ++i) right[v * N + i] = q[k * 256 + x * N + v * 64 + i];
    for (unsigned u = 0; u < U; ++u) for (unsigned v = 0; v < V; ++v) for (unsigned m = 0; m < M; ++m) for (unsigned n = 0; n < N; ++n)
      sums[(u * M + m) * (V * N) + v * N + n] += left[u * M + m] * right[v * N + n];
  }
}
"""  # noqa: E501


def program(bodies: dict[str, str], tier: str = "vectors", blocks: dict[str, tuple[int, int, int]] | None = None) -> transpile.Program:
    text = "".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items())
    text = MULTIPLY + text if "multiply<" in text else text
    return transpile.compile_text(text, "products.cu", tier=tier, blocks=blocks or {})


def written(body: str, blocks: tuple[int, int, int] | None = None) -> str:
    return program({"k": body}, blocks={"k": blocks} if blocks else None).source.partition("static void k_block")[2].partition("static void k_launch")[0]  # noqa: E501


# --- forms ----------------------------------------------------------------------------------------------------------------------------

SUM = "float s = 0; for (int k = 0; k < m; ++k) s += a[{row} * m + k] * b[k * n + {col}]; out[{row} * n + {col}] = s;"


def test_rows_of_a_known_width_become_rows() -> None:
    text = written("const int x = threadIdx.x % 32, y = threadIdx.x / 32; " + SUM.format(row="y", col="x"))
    assert "one_row && 8 <= (32) && dim_x % (32) == 0" in text and "ww::load(&b[k * n + x])" in text


def test_axes_are_exchanged_where_neighbours_lie_along_the_other() -> None:
    text = written("const int row = threadIdx.x, col = threadIdx.y; " + SUM.format(row="row", col="col"))
    assert "if (dim_y >= 8)" in text and "const int col = thread_x" in text
    assert "in another shape" not in written("const int row = threadIdx.y, col = threadIdx.x; " + SUM.format(row="row", col="col"))


def test_rows_through_pointers_and_stores_to_rows() -> None:
    text = written("const int r = blockIdx.x * blockDim.x + threadIdx.x; if (r >= n) return; const float* row = a + r * m; float s = 0; "
                   "for (int k = 0; k < m; ++k) s += row[k]; s = s / m; for (int k = 0; k < m; ++k) out[r * m + k] = row[k] - s;")  # fmt: skip
    assert "ww::load_rows(" in text and "s_r[nth] = (s_r[nth] / (float)m)" in text
    assert "for (int nth_lane = 0; nth_lane < last_x - at_x; ++nth_lane)" in text


def test_rows_of_each_thread_are_read_whole() -> None:
    text = written("const int r = blockIdx.x * blockDim.x + threadIdx.x; if (r >= n) return; float s = 0; "
                   "for (int k = 0; k < m; ++k) s += a[r * m + k] * b[k]; out[r] = s;")  # fmt: skip
    assert "ww::load_rows(" in text and "s_r[nth] += (row_1[nth][nth_step] * b[k])" in text


def test_the_largest_of_a_column_and_functions_of_floats_are_vectors_too() -> None:
    text = written("float most = -INFINITY, s = 0; for (int k = 0; k < m; ++k) { "
                   "most = fmaxf(most, a[k * n + threadIdx.x]); s += tanhf(b[k * n + threadIdx.x]); } out[threadIdx.x] = min(most, s);")  # fmt: skip
    assert "ww::most_of((most_r[nth]) - ww::floats{}, (ww::load(&a[k * n + thread_x])) - ww::floats{})" in text
    assert "ww::tanh_f(v)" in text and "ww::least_of(" in text


@pytest.mark.parametrize(
    "body",
    [
        "float s = 0; for (int k = 0; k < threadIdx.x; ++k) s += a[k * n + threadIdx.x]; out[threadIdx.x] = s;",  # lengths differ
        "float s = 0; for (int k = 0; k < m; ++k) s += a[(int)b[k * n + threadIdx.x]]; out[threadIdx.x] = s;",  # a gather
        "float s = 0; for (int k = 0; k < m; ++k) { s += a[k * n + threadIdx.x]; out[k] = s; }",  # all store to one place
        "double s = 0; for (int k = 0; k < m; ++k) s += a[k * n + threadIdx.x]; out[threadIdx.x] = s;",  # not floats
    ],
)
def test_other_sums_stay_with_the_compiler(body: str) -> None:
    assert "ww::floats" not in written(body)


TILE = """__shared__ float as[8][64], bs[8][64];
  float sums[4][8] = {}, left[4], right[8];
  const int x = threadIdx.x % 8, y = threadIdx.x / 8;
  for (int at = 0; at < m; at += 8) {
    for (int i = threadIdx.x; i < 512; i += 128) {
      const int place = (at + i / 64) * n + i % 64; as[i / 64][i % 64] = a[place]; bs[i / 64][i % 64] = b[place]; }
    __syncthreads();
    for (int k = 0; k < 8; ++k) {
      for (int i = 0; i < 4; ++i) left[i] = as[k][y * 4 + i];
      for (int i = 0; i < 8; ++i) right[i] = bs[k][x * 8 + i];
      for (int i = 0; i < 4; ++i) for (int j = 0; j < 8; ++j) sums[i][j] += left[i] * right[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) for (int j = 0; j < 8; ++j) out[(y * 4 + i) * 64 + x * 8 + j] = sums[i][j];"""


def test_a_tile_is_copied_and_its_operands_are_declared_where_they_are_written() -> None:
    text = written(TILE)
    assert "std::memcpy(sums, sums_t[thread], sizeof sums);" in text and "std::memcpy(sums_t[thread], sums, sizeof sums);" in text
    assert "left_t" not in text and "right_t" not in text and "float left[4];" in text


def test_tiles_of_neighbouring_threads_are_vectors_where_the_block_is_known() -> None:
    text = written(TILE)
    assert "ww::next_in_tiles(BX, 8, [](const int thread_x) { return (int)(((thread_x % 8) * 8 + 0)); })" in text
    assert "ww::same_in_tiles(BX, 8, [](const int thread_x) { return (int)(((thread_x / 8) * 4 + 0)); })" in text
    assert "vectors_at_once = ww::vectors_of_tiles(BX, 8, (4) * (8), [](const int thread_x) { return (int)(((thread_x / 8) * 4 + 0)); });" in text
    assert text.index("ww::join_tiles<8, (4) * (8)>((float*)sums_t") < text.index("for (int at = 0") < text.index("ww::part_tiles<8, (4) * (8)>(")
    assert "sums_v[nth_vector][(((i) * (8) + j) / (8)) % rows_at_once] += left[i] * right_v[nth_vector][(j) / (8)]" in text.replace("_2", "").replace("_3", "").replace("_4", "")  # noqa: E501
    for changed in (("sums[i][j] +=", "sums[i][j] -="), ("= bs[k][x * 8 + i]", "= bs[x * 8 + i][k]"), ("left[i] = as[k]", "left[i] = 2 * as[k]")):
        assert "ww::next_in_tiles" not in written(TILE.replace(*changed))


@pytest.mark.parametrize("change", [
    ("float sums[4][8] = {}, left[4], right[8];", "float sums[4][8] = {}, left[4] = {1, 1, 1, 1}, right[8];"), ("i < 4; ++i) left[i]", "i < 3; ++i) left[i]"),  # noqa: E501
])  # fmt: skip
def test_an_array_that_is_not_written_whole_stays_where_it_is(change: tuple[str, str]) -> None:
    assert "left_t" in written(TILE.replace("i < 4; ++i) left[i]", "i < 3; ++i) left[i]").replace(*change))


def test_tiles_with_another_name_stay_where_it_finds_them() -> None:
    head = TILE.partition("for (int at = 0")[0]
    assert "ww::join_tiles<" in written(TILE, (64, 1, 1))
    for other in ("float* p = sums[0];", "float* p; p = sums[1] + m;"):
        use = "p[2] += 1;"
        changed = TILE.replace(head, head + other + " ", 1).replace("__syncthreads();\n  }", f"__syncthreads(); {use} }}")
        assert use in changed and "ww::join_tiles<" not in written(changed, (64, 1, 1)), other


def test_tiles_that_a_function_is_given_are_those_of_the_kernel() -> None:
    multiply = "template <int M, int N> __device__ void multiply(float* s, const float* l, const float* r) { for (int k = 0; k < 4; ++k) for (int i = 0; i < M; ++i) for (int j = 0; j < N; ++j) s[i * N + j] += l[i] * r[k * N + j]; }\n"  # noqa: E501
    kernel = "__global__ void k(const float* a, float* out) { float s[32] = {}, l[4]; for (int t = 0; t < 3; ++t) { for (int i = 0; i < 4; ++i) l[i] = a[t * 4 + i]; multiply<4, 8>(s, l, a); __syncthreads(); } for (int i = 0; i < 32; ++i) out[threadIdx.x * 32 + i] = s[i]; }"  # noqa: E501
    text = transpile.compile_text(multiply + kernel).source.partition("static void k_block")[2].partition("static void k_launch")[0]
    assert "multiply" not in text and "l_t" not in text and "memcpy(s, s_t[thread]" in text


def test_borders_have_loops_of_their_own() -> None:
    text = written("__shared__ float s[18]; int i = blockIdx.x * 16 + threadIdx.x, t = threadIdx.x + 1; if (i < n) { s[t] = a[i]; "
                   "if (threadIdx.x == 0 && i > 0) s[0] = a[i - 1]; if (threadIdx.x == 15) s[17] = a[i + 1]; } __syncthreads(); "
                   "if (i < n) out[i] = s[t - 1] + s[t + 1];")  # fmt: skip
    assert text.count("for (int thread_x") >= 2 and text.count("if (const int thread_x = first_x; thread_x < last_x)") == 2


def test_unsigned_neighbours_are_shown() -> None:
    text = written("const unsigned t = threadIdx.x; __shared__ float s[512]; s[t] = a[t]; __syncthreads(); out[t] = s[t] + s[t + m];")
    assert "s[ww::start((0) + m) + thread_x]" in text


def test_every_nth_thread() -> None:
    tree = "__shared__ float s[256]; const unsigned t = threadIdx.x; s[t] = a[t]; __syncthreads(); for (unsigned d = 1; d < blockDim.x; d *= 2) { if (%s) s[%s] += s[%s + d]; __syncthreads(); } out[t] = s[t];"  # noqa: E501
    assert "thread_x += (int)((2 * d))" in written(tree % ("t % (2 * d) == 0", "t", "t"))
    assert "ww::bounded(" in written("__shared__ float s[256]; const unsigned t = threadIdx.x; s[t] = a[t]; __syncthreads(); for (unsigned d = 1; d < blockDim.x; d *= 2) { const int at = 2 * d * t; if (at < blockDim.x) s[at] += s[at + d]; __syncthreads(); } out[t] = s[t];")  # noqa: E501


# --- answers --------------------------------------------------------------------------------------------------------------------------


def random_product(random: Random) -> str:
    """Return a kernel whose threads add up products, looked at in a random shape."""
    width = random.choice((8, 16, 32))
    kind = random.choice(("int", "unsigned", "const int", "const unsigned int"))
    x, y = random.choice((
        (f"threadIdx.x % {width}", f"threadIdx.x / {width}"), (f"threadIdx.x & {width - 1}", f"threadIdx.x >> {width.bit_length() - 1}"),
        ("threadIdx.x", "threadIdx.y"), ("threadIdx.y", "threadIdx.x"), ("(int)threadIdx.x", "(int)threadIdx.y"),
    ))  # fmt: skip
    row, col = random.sample(("x", "y"), 2)
    lines = [f"{kind} x = {x}, y = {y}; {kind} row = blockIdx.x * 2 + {row}, col = {col};"]
    guard = random.choice(("", "if (row < n && col < 30) ", "if (col < 17) "))
    scale = random.choice(("", "float scale = a[col]; ", "const float scale = a[0]; "))
    left = random.choice(("a[row * m + k]", "a[k]", "a[row * m + k + 1]", "a[k * n + row]"))
    right = random.choice(("b[k * n + col]", "b[col * m + k]", "b[k + col]", "b[(k + 1) * n + col]"))
    step = random.choice(("s += {0} * {1};", "float v = {0} - {1}; s += v * v;", "s -= {0} * {1}; r += {1};", "s = s * 0.5f + {0} * {1};",
                          "s = fmaxf(s, {0} * {1}); r = min(r, {1});", "s += fabsf({0}); r = fminf(sqrtf(fabsf({1})), r);"))  # fmt: skip
    loop = random.choice(("for (int k = 0; k < m; ++k) {{ {0} }}", "for (int k = -1; k <= 2; ++k) {{ {1} }}", "for (int k = 1; k < m; k += 2) {{ {0} }}",  # noqa: E501
                          "for (int j = 0; j < 2; ++j) for (int k = j; k < m; k++) {{ {0} }}"))  # fmt: skip
    body = loop.format(step.format(left, right), step.format(left.replace("k", "(k + 1)"), right.replace("k", "(k + 1)")))
    result = "s" + (" * scale" if scale else "") + random.choice(("", " + r", " - out[at]"))
    lines.append(f"{guard}{{ {scale}float s = 0, r = 1; {body} const int at = (blockIdx.x * 256 + {row}) * 256 + col; out[at] = {result}; }}")
    if guard and random.random() < 0.5:
        lines[-1] = f"{scale}float s = 0, r = 1; {body} const int at = (blockIdx.x * 256 + {row}) * 256 + col; {guard}out[at] = {result};"
    return " ".join(lines)


def random_tile(random: Random) -> str:
    """Return a kernel whose threads keep a tile of sums over barriers."""
    rows, cols, depth = random.choice((1, 2, 4)), random.choice((2, 4, 8)), random.choice((1, 3, 4))
    flat = random.random() < 0.5
    place = (lambda i, j: f"sums[{i} * {cols} + {j}]") if flat else (lambda i, j: f"sums[{i}][{j}]")
    size = f"[{rows * cols}]" if flat else f"[{rows}][{cols}]"
    start = random.choice((" = {}", " = {0.f}"))
    width = random.choice((4, 8, 16))
    order = random.choice(("for (int k = 0; k < DEPTH; ++k) { LEFT RIGHT ADD }", "LEFT for (int k = 0; k < DEPTH; ++k) { RIGHT ADD }",
                           "for (int k = 0; k < DEPTH; ++k) { if (k == 1) { LEFT } RIGHT if (k > 0) { ADD } }"))  # fmt: skip
    first = "0" if "LEFT for" in order else "k"
    inside = (
        order.replace("LEFT", f"for (int i = 0; i < {rows}; ++i) left[i] = as[({first} * 8 + y + i) % 64];")
        .replace("RIGHT", f"for (int j = 0; j < {cols}; ++j) right[j] = bs[(k * 8 + x + j) % 64];")
        .replace("ADD", f"for (int i = 0; i < {rows}; ++i) for (int j = 0; j < {cols}; ++j) {place('i', 'j')} += left[i] * right[j];")
        .replace("DEPTH", str(depth))
    )
    lines = [
        f"__shared__ float as[64], bs[64]; float sums{size}{start}, left[{rows}] = {{}}, right[{cols}] = {{}};",
        f"const unsigned x = threadIdx.x % {width}, y = threadIdx.x / {width};",
        "for (int t = 0; t < 3; ++t) {",
        "if (threadIdx.x < 64) { as[threadIdx.x] = a[t * 64 + threadIdx.x]; bs[threadIdx.x] = b[t * 64 + threadIdx.x]; } __syncthreads();",
        inside,
        random.choice(("", f"if (t == 1) for (int j = 0; j < {cols}; ++j) {place('0', 'j')} *= 0.5f;")),
        "__syncthreads(); }",
        f"float all = left[0]; for (int i = 0; i < {rows}; ++i) for (int j = 0; j < {cols}; ++j) all = all * 3 + {place('i', 'j')};"
        if random.random() < 0.3
        else f"float all = 0; for (int i = 0; i < {rows}; ++i) for (int j = 0; j < {cols}; ++j) all = all * 3 + {place('i', 'j')};",
        "const int at = blockIdx.x * 256 + threadIdx.x; " + KEPT + "all;",
    ]
    return " ".join(lines)


def random_joined_tile(random: Random) -> str:
    """Return a product in tiles of threads, whose rows lie side by side for neighbours, or nearly."""
    rows, cols, depth, across = random.choice((1, 2, 8, 16, 32)), random.choice((4, 8, 16)), random.choice((2, 8)), random.choice((2, 4, 8, 16))
    rows = min(rows, 16) if cols == 16 else rows
    left = random.choice(("k * 64 + y * ROWS + i", "(y * ROWS + i) * DEPTH + k", "k * 64 + (y * ROWS + i) % 64", "k * 64 + x + i"))
    right = random.choice(("k * 128 + x * COLS + j", "x * COLS + j + k * 128", "k * 128 + y * COLS + j", "k * 128 + x * 4 + j"))
    place = random.choice(("sums[i][j]", "sums[i * COLS + j]", "sums[i + j]"))
    fill, size = f"for (int i = 0; i < ROWS; ++i) left[i] = as[{left}];", "[ROWS][COLS]" if "][" in place else "[ROWS * COLS]"
    text = f"""__shared__ float as[4096], bs[4096]; float sums{size} = {{}}, left[ROWS], right[COLS];
      const int x = threadIdx.x % {across}, y = threadIdx.x / {across} % 8;
      for (int t = 0; t < 2; ++t) {{
        for (int j = threadIdx.x; j < 4096; j += blockDim.x) {{ as[j] = a[t * 4096 + j]; bs[j] = b[t * 4096 + j]; }}
        __syncthreads();
        {random.choice(("", "if (t == 0) out[200000 + threadIdx.x] = m; "))}
        for (int k = 0; k < DEPTH; ++k) {{
          {fill} for (int j = 0; j < COLS; ++j) right[j] = bs[{right}];
          for (int i = 0; i < ROWS; ++i) for (int j = 0; j < COLS; ++j) {place} += left[i] * right[j];
        }}
        __syncthreads();
      }}
      float all = 0; for (int i = 0; i < ROWS; ++i) for (int j = 0; j < COLS; ++j) all = all * 3 + {place};
      const int at = blockIdx.x * 256 + threadIdx.x; {KEPT}all;"""
    return text.replace("ROWS", str(rows)).replace("COLS", str(cols)).replace("DEPTH", str(depth)).replace("\n", " ")


def random_opened_tile(random: Random) -> str:
    """Return a product in tiles of threads by a function that is given them, with shared memory under other names."""
    depth, u, v, m, n = random.choice((1, 4, 8)), random.choice((1, 2)), random.choice((1, 2, 3)), random.choice((2, 4, 8)), random.choice((4, 8, 16))
    across = random.choice((4, 8, 16))
    size = u * m * v * n
    y = random.choice(("t / ACROSS % 8", "t / ACROSS % 8", "(t / 32) % 4 + t % 2"))
    x = random.choice(("t % ACROSS", "t % ACROSS", "(t % 32) % ACROSS", "t % ACROSS * 2"))
    pointer = random.choice(("as", "as", "as + 1", "p"))
    return f"""__shared__ float as[4096], bs[4096]; const unsigned t = threadIdx.x; const float* p = as; if (m == 17) p = bs;
      float sums[{size}] = {{}}, left[{u * m}], right[{v * n}]; const int x = {x}; const unsigned y = {y};
      for (int r = 0; r < 2; ++r) {{
        for (int j = threadIdx.x; j < 4096; j += blockDim.x) {{ as[j] = a[r * 4096 + j]; bs[j] = b[r * 4096 + j]; }}
        __syncthreads();
        {random.choice(("", "out[200000 + threadIdx.x] = m;"))}
        multiply<{depth}, {u}, {v}, {m}, {n}>(left, right, sums, {pointer}, bs, y, x);
        {random.choice(("", "", "sums[1] += 1;"))}
        __syncthreads();
      }}
      float all = 0; for (int i = 0; i < {size}; ++i) all = all * 3 + sums[i];
      const int at = blockIdx.x * 256 + threadIdx.x; {KEPT}all;""".replace("ACROSS", str(across)).replace("\n", " ")


def test_tiles_larger_than_the_registers_go_through_their_loop_in_parts() -> None:
    text = written("""__shared__ float as[4096], bs[4096]; float sums[128] = {}, left[8], right[16];
      const unsigned t = threadIdx.x; const int x = t % 4, y = t / 4;
      for (int r = 0; r < m; ++r) { for (int j = t; j < 4096; j += blockDim.x) { as[j] = a[j + r]; bs[j] = b[j + r]; } __syncthreads();
      multiply<8, 1, 4, 8, 4>(left, right, sums, as, bs, y, x); __syncthreads(); }
      for (int i = 0; i < 128; ++i) out[t * 128 + i] = sums[i];""")  # fmt: skip
    assert "constexpr int rows_at_once = ww::rows_of_tiles((128) / (4));" in text and "&as[k * 128 + y_2 * (8)" in text.partition("each_part")[2]
    assert "/ rows_at_once == nth_part) sums_v[nth_vector]" in text


def test_rows_that_overlap_are_no_vectors() -> None:
    flat = TILE.replace("sums[4][8]", "sums[32]").replace("sums[i][j]", "sums[i * 8 + j]")
    assert "ww::next_in_tiles" in written(flat)
    assert "ww::next_in_tiles" not in written(flat.replace("sums[i * 8 + j] +=", "sums[i + j] +="))
    assert "ww::next_in_tiles" not in written(flat.replace("right[i] =", "right[i + 1] =").replace("right[8]", "right[16]"))


def random_border(random: Random) -> str:
    """Return a kernel that loads a tile with borders, or goes up a tree, with indices of a random type."""
    kind = random.choice(("int", "unsigned"))
    lines = [f"__shared__ float s[300]; const {kind} t = threadIdx.x, i = blockIdx.x * blockDim.x + t; for (int j = threadIdx.x; j < 300; j += blockDim.x) s[j] = j; __syncthreads();"]  # noqa: E501
    border = random.choice((
        "if (i < n) { s[t + 1] = a[i]; if (t == 0 && i > 0) s[0] = a[i - 1]; if (t == blockDim.x - 1) s[t + 2] = a[i + 1]; }",
        "s[t + 4] = i < n ? a[i] : 0.f; if (t < 4) { s[t] = i >= 4 ? a[i - 4] : 0.f; s[t + 4 + blockDim.x] = i + blockDim.x < n ? a[i + blockDim.x] : 0.f; }",  # noqa: E501
        "s[t] = a[i]; if (t == 3) { s[270] = b[i]; } if (i < n && t == 5) s[271] = a[i] * 2;",
        "float v = a[i]; if (i < n) { s[t] = v; if (t == 0) s[260] = v * 2; }",
    ))  # fmt: skip
    after = random.choice((
        "float sum = 0; for (int j = 0; j <= 8; ++j) sum += s[t + j]; if (i < n) out[i] = sum;", "if (i + 1 < n) out[i] = s[t] + s[t + m] * s[271 - t];",  # noqa: E501
        "float w = s[t + 1]; if (t % 2 == 0) w = w + s[t]; out[i] = w;",
    ))  # fmt: skip
    tree = random.choice((
        "", f"for ({kind} d = 1; d < blockDim.x; d *= 2) {{ if (t % (2 * d) == 0) s[t] += s[t + d]; __syncthreads(); }}",
        f"for ({kind} d = 1; d < blockDim.x; d *= 2) {{ {kind} at = 2 * d * t; if (at < blockDim.x) s[at] += s[at + d]; __syncthreads(); }}",
        f"for ({kind} d = blockDim.x / 2; d > 0; d >>= 1) {{ if (t < d) s[t] += s[t + d]; __syncthreads(); }}",
        f"for ({kind} d = 1; d < 40; d += m % 3 + 1) {{ if ((t + 3) % d == 0 && t > 2) s[t] = s[t] * 2 + d; __syncthreads(); }}",
    ))  # fmt: skip
    pairs = random.choice(("", "float2 p = reinterpret_cast<const float2*>(a)[i]; p.x = p.x * 2 + s[t], p.y -= p.x; reinterpret_cast<float2*>(out + 4096)[i] = p; __syncthreads();"))  # noqa: E501
    lines += [border, "__syncthreads();", pairs, tree, after]
    return " ".join(lines)


def random_row(random: Random) -> str:
    """Return a kernel whose threads have rows of their own, with sums, stores along them, and guards on quotients and rests."""
    start = random.choice(("0.f", "a[0]", "n > 50 ? a[1] : 0.f", "b != NULL ? b[i % 4] : 1.f"))
    row = random.choice((
        "const float* row = a + i * m;", "const float* first = a + 3; const float* row = first + i * m + 1;", "const float* row = a + i;",
    ))  # fmt: skip
    later = random.choice(("", "s = s / m;", "const float c = s * 0.5f + 1.f / sqrtf(s * s + 1.f);", "s *= row[0];"))
    value = "c" if "c =" in later else "s"
    wide = random.choice(("m", "(m - 1)"))
    store = random.choice(("out[i] = S;", "out[2 * i + 1] = S;",
                           f"for (int k = 0; k < {wide}; ++k) out[i * m + k] = row[k] - S * b[k]; out[200000 + i] = S;",
                           "for (int k = 0; k < m; ++k) out[i * m + k] -= S;")).replace("S", value)  # fmt: skip
    more = random.choice(("", " for (int k = 1; k < m; ++k) { const float d = row[k] - s; s += d * d; }"))
    sums = "for (int k = 0; k < m; ++k) s += row[k] * b[k];" + more
    one = f"float s = {start}; {sums} {later} {store}"
    col, line = "i % m", "i / m % m"
    other = random.choice(("out[150000 + i] = -1.f;", "for (int k = 0; k < 2; ++k) out[150000 + i] += k;"))
    shape = random.choice((
        "if (i < n) {{ {0} }}", "if (i >= n) return; {0}", "if (i >= n || i < 3) {{ {1} return; }} {0}", "if ({2} > {3}) {{ {1} return; }} {0}",
        "if ({2} > {3}) {{ {1} }} else {{ {0} }}", "if (i < n && {2} <= {3} + 2) {{ {0} }}", "bool in = {2} < {3}; if (!in) {{ {0} }}",
    ))  # fmt: skip
    index = random.choice(("const int i = blockIdx.x * blockDim.x + threadIdx.x;", "int i = threadIdx.x; i = i + blockIdx.x * blockDim.x;"))
    return f"{index} if (i >= 600) return; {row} " + shape.format(one, other, col, line)


def agree(makers: list[Callable[[Random], str]], seed: int, count: int) -> None:
    random = Random(seed)
    bodies = {f"k{i}": makers[i % len(makers)](random) for i in range(count)}
    sheets = (64, 1, 1), (128, 1, 1), (256, 1, 1), (16, 16, 1), (8, 12, 1), (32, 4, 1)
    shapes = {name: random.choice(sheets if "threadIdx.y" in body else sheets[:3]) for name, body in bodies.items()}
    known = {name: shape for name, shape in shapes.items() if random.random() < 0.5}
    vectors, fibers = program(bodies, blocks=known).load(OPTIMISED), program(bodies, "fibers").load(PLAIN)
    rng = np.random.default_rng(seed)
    a, b = (rng.normal(0, 3, 1 << 14).astype(np.float32) for _ in range(2))
    for name, shape in shapes.items():
        for grid, n, m in ((1, 33, 5), (3, 200, 17), (4, 400, 24)):
            seen, expected = (np.ones(1 << 18, np.float32) for _ in range(2))
            vectors[name][grid, shape](a, b, seen, n, m)
            fibers[name][grid, shape](a, b, expected, n, m)
            assert np.array_equal(seen, expected, equal_nan=True), (bodies[name], shape, name in known, grid, n, m)


@pytest.mark.compiler
def test_answers_are_those_of_fibers_to_the_bit() -> None:
    agree([random_product, random_tile, random_border, random_row, random_joined_tile, random_opened_tile], 5, 24)


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.parametrize("maker", [random_product, random_tile, random_border, random_row, random_joined_tile, random_opened_tile])
@pytest.mark.parametrize("seed", [1, 2])
def test_many_answers_are_those_of_fibers_to_the_bit(maker: Callable[[Random], str], seed: int) -> None:
    agree([maker], seed, 40)
