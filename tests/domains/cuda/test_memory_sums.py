"""Sums in memory and grids without a guard: when a local sum and a guard are legal, and that textbook products become what tiles want."""

from __future__ import annotations

import types
from pathlib import Path

import pytest
import torch

from warpwright import domains
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.techniques import techniques
from warpwright.domains.cuda.techniques.guard import Guard
from warpwright.domains.cuda.techniques.launches import Block
from warpwright.domains.cuda.techniques.sums.in_memory import LocalSum
from warpwright.search.moves import Moves

pytest.importorskip("clang")

HEAD = "const float* x, float* out, int n, int m"


def source(body: str, index: str = "int i = blockIdx.x * blockDim.x + threadIdx.x;", arguments: str = "x, out, n, m", block: str = "64") -> str:
    return (
        f"__global__ void k({HEAD}) {{\n    {index}\n{body}\n}}\n\n"
        f'extern "C" void run({HEAD}) {{\n    k<<<n / 64, {block}>>>({arguments});\n}}\n'
    )


LOOP = "for (int j = 0; j < m; ++j) { BODY }"


@pytest.mark.parametrize(
    ("body", "arguments", "legal"),
    [
        ("out[i] += x[i * m + j];", "x, out, n, m", True),
        ("out[i] = out[i] + x[j];", "x, out, n, m", True),
        ("if (x[j] > 0) out[i] += x[j];", "x, out, n, m", True),
        ("for (int l = 0; l < 3; ++l) out[i] += x[j + l];", "x, out, n, m", True),
        ("out[i] = x[j];", "x, out, n, m", False),
        ("out[j] += x[i];", "x, out, n, m", False),
        ("out[i] += out[j];", "x, out, n, m", False),
        ("out[i] += x[j]; out[j] += 1;", "x, out, n, m", False),
        ("out[m] += x[j];", "x, out, n, m", False),
        ("out[(int)x[i]] += x[j];", "x, out, n, m", False),
        ("out[i] += x[j]; atomicAdd(out, 1.0f);", "x, out, n, m", False),
        ("out[i] += x[j]; i += 1;", "x, out, n, m", False),
        ("out[i] += x[i * m + j];", "x, x, n, m", False),
        ("out[i] += x[i * m + j];", "out, out + n, n, m", False),
    ],
)
def test_a_sum_in_memory_becomes_local_where_nothing_else_reaches_it(body: str, arguments: str, legal: bool) -> None:
    text = source(LOOP.replace("BODY", body), arguments=arguments)
    assert bool(list(LocalSum().sites(Plan(text)))) is legal


def test_what_the_element_was_given_in_front_of_the_loop_starts_the_sum() -> None:
    for before, start in (("out[i] = 1.5f;", "= 1.5f;"), ("", "= out[i];"), ("out[i] = out[0];", "= out[i];"), ("out[i + 1] = 0;", "= out[i];")):
        text = source(f"if (i < n) {{ {before} {LOOP.replace('BODY', 'out[i] += x[j];')} }}")
        [action] = LocalSum().sites(Plan(text))
        made = LocalSum().apply(Plan(text), action)
        assert f"ww_sum_0 {start}" in made.text and "out[i] = ww_sum_0;" in made.text and "ww_sum_0 += x[j]" in made.text
        assert made.text.count("out[i] = 1.5f") == 0 and not list(LocalSum().sites(made))


@pytest.mark.parametrize(
    ("index", "body", "axes"),
    [
        ("int i = blockIdx.x * blockDim.x + threadIdx.x;", "out[i] = x[i];", "x"),
        ("int i = blockIdx.x * blockDim.x + threadIdx.x; int j = blockIdx.y * blockDim.y + threadIdx.y;", "out[i * m + j] = x[i];", "xy"),
        ("int i = blockIdx.x * blockDim.x + threadIdx.x; int j = blockIdx.y * blockDim.y + threadIdx.y;", "if (j < m) out[i * m + j] = x[i];", "x"),
        ("int i = blockIdx.x * blockDim.x + threadIdx.x;", "if (i < n) out[i] = x[i];", ""),
        ("int i = blockIdx.x * blockDim.x + threadIdx.x;", "if (not (i >= n) and x[0] > 0) out[i] = x[i];", "x"),
        ("int i = blockIdx.x * blockDim.x + threadIdx.x;", "if (i < n and x[0] > 0) out[i] = x[i];", ""),
        ("int i = blockIdx.x * blockDim.x + threadIdx.x;", "if (i < n / 2) out[i] = 1; else if (i < n) out[i] = x[i];", ""),
        ("int i = blockIdx.x * blockDim.x + threadIdx.x;", "if (i < n / 2) out[i] = 1; else out[i] = x[i];", "x"),
        ("int i = threadIdx.x;", "out[i] = x[i];", ""),
        ("int i = blockIdx.x * blockDim.x + threadIdx.x; int j = blockIdx.x * blockDim.x + threadIdx.x;", "out[i] = x[j];", ""),
    ],
)
def test_a_grid_without_a_guard_gets_one(index: str, body: str, axes: str) -> None:
    plan = Plan(source(body, index))
    sites = list(Guard().sites(plan))
    assert bool(sites) is bool(axes)
    if sites:
        made = Guard().apply(plan, sites[0])
        assert all(f"long long ww_count_{axis}" in made.text and f"ww_threads{'_y' * (axis == 'y')}(n / 64, 64)" in made.text for axis in axes)
        assert not list(Guard().sites(made)) and list(Block().sites(made))


def test_three_axes_and_branches_that_bound_every_index_may_have_another_block() -> None:
    index = " ".join(f"int {name} = blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis};" for name, axis in zip("ijl", "xyz", strict=True))
    body = "if (i > 0 && i < n - 1 && j < m) { out[i] = x[l]; } else if (j < m && i < n) { out[i] = x[j]; }"
    assert next(map(str, Block().sites(Plan(source(body, index, block="dim3(8, 8, 1)"))))) == "block(k, x=32, y=4)"
    assert not list(Block().sites(Plan(source(body.replace("&& i < n) {", ") {"), index))))


def test_kernels_that_only_a_class_launches_are_not_rewritten() -> None:
    other = "__global__ void other(float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 0; }\n"
    user = "struct User { float* y; void go(int n) { other<<<n, 64>>>(y, n); } };\n"
    text = other + user + source("if (i < n) out[i] = x[i];")
    assert {action.at for action in Block().sites(Plan(text))} == {"k"}
    assert {action.at for action in Block().sites(Plan(text.replace("    k<<<", "    User user; user.go(n);\n    k<<<")))} == {"k", "other"}


@pytest.mark.compiler
def test_a_textbook_product_is_tiled_and_right(tmp_path: Path) -> None:
    from test_rewritten_texts import TEXTBOOK

    (tmp_path / "product.cu").write_text(TEXTBOOK)
    (tmp_path / "product_task.py").write_text(
        "import torch\n\n\ndef get_inputs():\n    return [torch.randn(48, 48), torch.randn(48, 48)]\n\n\ndef reference(a, b):\n    return a @ b\n\n\n"
        "def launch(kernel, a, b):\n    out = torch.empty_like(a)\n    kernel.run(a, b, out, a.shape[0])\n    return out\n"
    )
    space = domains.space(domains.describe(tmp_path / "product.cu"), "cpu")
    moves = Moves(space)
    recipe = moves.fixpoint((), "ED")
    assert {"local_sum", "guard"} <= {action.technique for action in recipe}
    tiled = next(longer for longer in moves.additions(recipe) if longer[-1].technique == "product_tile")
    module = types.ModuleType("product")
    exec(compile(space.candidate(tiled).source.text, "product", "exec"), module.__dict__)
    torch.manual_seed(0)
    inputs = module.get_inputs()
    assert torch.allclose(module.ModelNew()(*inputs), module.reference(*inputs), atol=1e-4)


def test_every_technique_has_a_name_of_its_own() -> None:
    names = [technique.name for technique in techniques("cuda")]
    assert len(set(names)) == len(names)
