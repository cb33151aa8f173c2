"""The rewrites of CUDA texts: where they are offered and where not; and all of them at once in one text, against torch, at awkward sizes."""

from __future__ import annotations

import types
from pathlib import Path

import pytest
import torch
from cuda_texts import once

from benchmarks.cuda.plain20 import KERNELS, write
from warpwright import domains
from warpwright.base import Action
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.techniques import techniques
from warpwright.errors import NotApplicable, TaskError
from warpwright.space import Space

pytest.importorskip("clang")

FIRST = {
    "row_sum": "cooperate", "softmax": "cooperate", "layer_norm": "cooperate", "matvec": "cooperate", "cross_entropy": "cooperate",
    "row_max": "cooperate", "sum": "gather_atomics", "dot": "shuffle_tree", "mean_squared_error": "gather_atomics", "histogram": "privatise",
    "inside_circle": "gather_atomics", "matrix_add": "swap_axes", "transpose": "transpose_tile", "matmul": "product_tile",
    "distances": "swap_axes", "bodies": "cooperate", "saxpy": "block", "reverse": "coarsen", "jacobi": "block", "convolution": "unroll",
}  # fmt: skip
"""What each plain kernel is there for."""

SIZES = {"saxpy": (1, 0), "reverse": (33, 0), "sum": (257, 0), "dot": (1000, 0), "histogram": (1023, 0), "bodies": (65, 0), "row_sum": (3, 1),
         "softmax": (65, 31), "layer_norm": (33, 33), "transpose": (33, 65), "matmul": (65, 33), "distances": (17, 70)}  # fmt: skip


def offered(text: str) -> set[str]:
    space: Space[Plan] = Space(Plan(text), techniques("cuda"), lambda ir, actions: None)  # type: ignore[arg-type, return-value]
    return {action.technique for action in space.actions(space.start)}


def source(body: str, head: str = "const float* x, float* out, int n, int m", launch: str = "(n + 63) / 64, 64", index: str = "") -> str:
    index = index or "int i = blockIdx.x * blockDim.x + threadIdx.x;"
    names = ", ".join(part.split()[-1].lstrip("*") for part in head.split(","))
    return (
        f"__global__ void k({head}) {{\n    {index}\n    if (i < n) {{\n{body}\n    }}\n}}\n\n"
        f'extern "C" void run({head}) {{\n    k<<<{launch}>>>({names});\n}}\n'
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_each_plain_kernel_is_offered_its_rewrite(kernel: object) -> None:
    assert FIRST[kernel.name] in offered(kernel.cuda)  # type: ignore[attr-defined]


ROW = "float s = 0; for (int j = 0; j < m; ++j) { BODY } out[i] = s;"


@pytest.mark.parametrize(
    "body",
    [
        "s = s * 0.5f + x[i * m + j];",
        "s += x[i * m + j]; if (s > 10) break;",
        "s += x[i * m + j]; out[j] = s;",
        "out[i * m + j] = j ? out[i * m + j - 1] + x[j] : x[j];",
        "out[i] += x[i * m + j];",
        "out[(i * m + j) / 2] = x[j];",
        "s += x[i * m + j]; __syncthreads();",
        "s += x[threadIdx.x + j];",
        "s += x[i * m + j]; j += 1;",
    ],
)
def test_a_loop_whose_turns_depend_on_one_another_is_not_shared_out(body: str) -> None:
    assert "cooperate" in offered(source(ROW.replace("BODY", "s += x[i * m + j];")))
    assert "cooperate" not in offered(source(ROW.replace("BODY", body)))


@pytest.mark.parametrize(
    "body", ["atomicAdd(&out[i % 4], x[i]);", "float old = atomicAdd(out, x[i]); if (old < 0) out[1] = old;", "atomicAdd(out, x[i] + out[0]);"]
)
def test_atomics_that_are_not_on_one_untouched_place_stay(body: str) -> None:
    assert "gather_atomics" in offered(source("atomicAdd(out, x[i]);"))
    assert "gather_atomics" not in offered(source(body))


def test_a_table_of_unknown_size_is_not_copied() -> None:
    head = "const int* x, int* out, int n, int m"
    table = source("atomicAdd(&out[x[i]], 1);", head)
    assert "privatise" not in offered(table)
    filled = table.replace("    k<<<", "    cudaMemset(out, 0, m * sizeof(int));\n    k<<<")
    assert "privatise" in offered(filled)
    assert "privatise" not in offered(filled.replace("cudaMemset(out, 0,", "cudaMemset(out, 255,"))
    assert "privatise" not in offered(filled.replace("cudaMemset(out", "cudaMemset(other"))


@pytest.mark.parametrize("arguments", ["x, x, n, m", "x, x + n, n, m"])
def test_pointers_that_may_overlap_are_not_declared_apart(arguments: str) -> None:
    text = source("out[i] = x[i];")
    assert "restrict" in offered(text) and "restrict" not in offered(text.replace(">>>(x, out, n, m)", f">>>({arguments})"))


def test_a_kernel_without_a_bound_keeps_its_grid() -> None:
    text = source("out[i] = x[i];")
    assert "block" in offered(text) and "block" not in offered(text.replace("if (i < n)", "if (i != n)"))


def test_an_action_that_is_not_legal_is_refused() -> None:
    plan = Plan(source("out[i] = x[i];"))
    for technique in techniques("cuda"):
        with pytest.raises(NotApplicable):
            technique.apply(plan, Action(technique.name, "no_such_kernel", (("n", 3),))) if technique.name != "fast_math" else technique.apply(
                technique.apply(plan, Action("fast_math")), Action("fast_math")
            )


@pytest.mark.slow
@pytest.mark.compiler
def test_all_rewrites_give_what_torch_gives(tmp_path: Path) -> None:
    """Every plain kernel with the rewrite that it is there for, in one CUDA text, so that one build does."""
    from warpwright.targets import cuda_on_cpu

    modules: dict[str, types.ModuleType] = {}
    parts: list[str] = []
    for kernel in KERNELS:
        [path] = write(tmp_path, [kernel], "cpu")
        sizes = SIZES.get(kernel.name, (70, 45))
        task = kernel.task.replace("@N", str(sizes[0])).replace("@M", str(sizes[1]))
        path.with_name(f"{kernel.name}_task.py").write_text(f"import torch\n\n{task}")
        space = domains.space(domains.describe(path), "cpu")
        first = next(action for action in space.actions(space.start) if action.technique == FIRST[kernel.name])
        recipe = [first, *[a for a in space.actions(space.apply(space.start, first)) if a.technique == "product_tile"][:1]]
        module = types.ModuleType(kernel.name)
        text = space.candidate(recipe).source.text
        exec(compile(text, kernel.name, "exec"), module.__dict__)
        modules[kernel.name] = module
        parts.append(module.CUDA_SOURCE)
    whole = "\n".join(parts)
    library = cuda_on_cpu.library(once(whole), "all.cu")
    for kernel_name, module in modules.items():
        torch.manual_seed(0)
        inputs = module.get_inputs()
        wanted = module.reference(*[x.double() if x.is_floating_point() else x for x in inputs])
        seen = module.launch(module.Kernels(library), *inputs)
        for one, exact in zip(*(value if isinstance(value, tuple) else (value,) for value in (seen, wanted)), strict=True):
            assert float((one.double() - exact).abs().max()) <= 1e-5 * max(1.0, float(exact.double().abs().max())), kernel_name


def test_a_source_without_a_host_function_is_no_task(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("__global__ void k(float* x) { x[0] = 1; }\n")
    (tmp_path / "k_task.py").write_text("def get_inputs(): ...\ndef reference(x): ...\ndef launch(kernel, x): ...\n")
    task = domains.describe(tmp_path / "k.cu")
    with pytest.raises(TaskError, match="host function"):
        domains.space(task, "cpu")
    (tmp_path / "k_task.py").write_text("def get_inputs(): ...\n")
    with pytest.raises(TaskError, match="reference"):
        domains.describe(tmp_path / "k.cu")
    (tmp_path / "k_task.py").unlink()
    with pytest.raises(TaskError, match="--task"):
        domains.describe(tmp_path / "k.cu")
