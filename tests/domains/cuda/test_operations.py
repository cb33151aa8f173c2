"""Tasks that are an operation which has a template: what is read off a reference and a launch, what is not, and what the entry becomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.fsr20 import run
from warpwright.base import Action
from warpwright.domains.cuda import operations
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.techniques.operation import Operate
from warpwright.errors import NotApplicable

pytest.importorskip("clang")

VECTOR = """
def get_inputs():
    return [torch.randn(1000)]


def reference(x):
    return REFERENCE


def launch(kernel, x):
    out = torch.empty_like(x)
    LAUNCH
    return out
"""

TEXT = """__global__ void k(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

extern "C" void run(const float* x, float* y, int n) {
    k<<<(n + 255) / 256, 256>>>(x, y, n);
}
"""


def vector(reference: str, launch: str = "kernel.run(x, out, len(x))") -> str:
    return VECTOR.replace("REFERENCE", reference).replace("LAUNCH", launch)


def known(python: str) -> str:
    found = operations.of_task(python, "task")
    return found[0].template if found is not None else ""


def test_the_suite_has_seven_of_them() -> None:
    found = {kernel.name: known(kernel.task_text("cpu")) for kernel in run.KERNELS}
    assert {name: template for name, template in found.items() if template} == {
        "prefix_sum": "prefix_sum", "sort": "radix_sort", "top_k": "top_k", "matmul": "product", "attention": "attention",
        "least_squares": "normal_equations", "convolution": "window_product",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reference", "filter_", "template"),
    [
        ("conv2d(x[None, None], f[None, None])[0, 0]", "2, 5", "window_product"),
        ("conv2d(x[None, None], f[None, None]).squeeze()", "9, 9", "window_product"),
        ("conv2d(x.view(1, 1, 40, 50), f.view(1, 1, 3, 3)).view(38, 48)", "3, 3", "window_product"),
        ("conv2d(x[None, None], f[None, None])[0, 0]", "17, 2", ""),
        ("conv2d(x[None, None], f[None, None], padding=1)[0, 0]", "3, 3", ""),
        ("conv2d(x[None, None], f[None, None], stride=2)[0, 0]", "3, 3", ""),
        ("conv2d(x[None, None], f.t()[None, None])[0, 0]", "2, 5", ""),
        ("conv2d(x[None, None], f[None, None])[0, 0].t()", "3, 3", ""),
        ("conv2d(x[None, None], f[None, None], f.sum()[None])[0, 0]", "3, 3", ""),
        ("conv2d(x.view(1, 2, 20, 50), f.view(1, 2, 3, 3))[0, 0]", "6, 3", ""),
    ],
)  # fmt: skip
def test_a_filter_that_slides_over_a_plane(reference: str, filter_: str, template: str) -> None:
    head = f"def get_inputs():\n    return [torch.randn(40, 50), torch.randn({filter_})]\n"
    launch = "def launch(kernel, x, f):\n    out = reference(x, f).contiguous()\n    kernel.run(x, f, out, 40, 50)\n    return out\n"
    assert known(f"{head}def reference(x, f):\n    return torch.nn.functional.{reference}\n{launch}") == template


@pytest.mark.parametrize(
    ("reference", "template"),
    [
        ("torch.sort(x)[0]", "radix_sort"), ("x.sort(descending=True).values", ""), ("x.sort().values + 1", ""), ("(x + 0.5).sort().values", ""),
        ("torch.sort(x, stable=True).values", "radix_sort"), ("torch.cumsum(x, -1)", ""), ("torch.cumsum(x, 0)", "prefix_sum"),
        ("x.reshape(10, 100).cumsum(0).flatten()", ""), ("x.flip(0).cumsum(0)", ""), ("x.view(1000).cumsum(dim=0)", "prefix_sum"),
        ("x.topk(1000).values", "top_k"), ("x.topk(1000, largest=False).values", ""), ("x.clone().sort().values", "radix_sort"),
        ("x[torch.argsort(x)]", ""), ("x.double().cumsum(0).float()", ""),
        ("x.cumsum(0, dtype=torch.float64)", ""), ("torch.full_like(x, x.sum().item())", ""),
    ],
)  # fmt: skip
def test_a_reference_is_what_its_operators_say(reference: str, template: str) -> None:
    if reference == "torch.cumsum(x, -1)":
        assert known(vector(reference)) in ("", "prefix_sum")  # -1 is the only axis there is
        return
    assert known(vector(reference)) == template


@pytest.mark.parametrize(
    "launch",
    [
        "kernel.run(x, out, len(x)); kernel.run(out, x, len(x))", "pass", "kernel.run(x, out[1:], len(x))", "kernel.run(x, x, len(x)); out = x",
        "kernel.run(x.clone(), out, len(x))", "kernel.run(x, out, len(x)); out = out * 2",
    ],
)  # fmt: skip
def test_a_launch_that_does_more_than_call_its_entry_is_left_alone(launch: str) -> None:
    python = vector("x.cumsum(0)", launch)
    technique = Operate(python, "task")
    assert not list(technique.sites(Plan(TEXT)))
    with pytest.raises(NotApplicable):
        technique.apply(Plan(TEXT), Action("operate", "run", (("template", "prefix_sum"),)))


def test_the_entry_calls_the_template_at_the_sizes_of_the_task_alone() -> None:
    technique = Operate(vector("x.cumsum(0)"), "task")
    first, *others = technique.sites(Plan(TEXT))
    assert str(first) == 'operate(run, template="prefix_sum")' and len(others) == 4
    made = technique.apply(Plan(TEXT), others[0])
    assert "if (n == 1000) {\n        ww_prefix_sum(x, y, 1000);\n        return;" in made.text and "k<<<" in made.text
    assert "#define WW_SCAN_THREADS 128" in made.text and list(made.unit.kernels) == ["k"], "a template's own kernels are not rewritten"
    assert not list(technique.sites(made)), "once"
    with pytest.raises(NotApplicable):
        technique.apply(Plan(TEXT), Action("operate", "run", (("template", "radix_sort"),)))
    with pytest.raises(NotApplicable):
        technique.apply(Plan(TEXT), Action("operate", "run", (("template", "prefix_sum"), ("SCAN_THREADS", 96))))


@pytest.mark.parametrize(
    ("reference", "whole", "legal"), [("x.sort().values", False, True), ("x.cumsum(0)", False, False), ("x.sort().values", True, True)]
)
def test_a_sort_may_be_done_where_the_elements_lie_and_be_of_integers(reference: str, whole: bool, legal: bool) -> None:
    python = vector(reference, "kernel.run(out, len(x))").replace("torch.empty_like(x)", "x.clone()")
    text = TEXT.replace("const float* x, float* y", "float* y").replace("(x, y, n)", "(y, n)").replace("x[i]", "-y[i]")
    if whole:
        python, text = python.replace("torch.randn(1000)", "torch.randint(9, (1000,), dtype=torch.int32)"), text.replace("float", "int")
    technique = Operate(python, "task")
    found = list(technique.sites(Plan(text)))
    assert bool(found) is legal
    if legal:
        made = technique.apply(Plan(text), found[0]).text
        assert "ww_sort(y, y, 1000);" in made and f"#define WW_SORT_WHOLE {int(whole)} " in made
        assert not list(technique.sites(Plan(text.replace("int* y", "unsigned int* y").replace("float* y", "double* y"))))


def test_an_order_of_elements_is_followed() -> None:
    [kernel] = [kernel for kernel in run.KERNELS if kernel.name == "attention"]
    found = operations.of_task(kernel.task_text("cpu"), "attention")
    assert found is not None
    size = dict(found[0].sizes)
    assert (size["heads"], size["depth"], size["q_head"], size["q_row"], size["o_head"], size["o_row"]) == (4, 16, 16, 64, 16, 64)
    other = kernel.task_text("cpu").replace("x.reshape(len(x), HEADS, -1)", "x.reshape(len(x), -1, HEADS).transpose(1, 2)")
    assert operations.of_task(other, "attention") is None, "heads whose elements do not lie side by side"
    scaled = operations.of_task(kernel.task_text("cpu").replace("** 0.5, 2)", "** 0.5 * 3, 2)"), "attention")
    assert scaled is not None and dict(scaled[0].sizes)["scale"] == pytest.approx(0.75)
    masked = kernel.task_text("cpu").replace("** 0.5, 2)", "** 0.5 + 1, 2)")
    assert operations.of_task(masked, "attention") is None


def test_the_ladder_tries_a_template_among_the_first(tmp_path: Path) -> None:
    from warpwright import domains

    (tmp_path / "run.cu").write_text(TEXT)
    (tmp_path / "run_task.py").write_text("import torch\n" + vector("x.cumsum(0)"))
    for target in ("cpu", "cuda"):
        space = domains.space(domains.describe(tmp_path / "run.cu"), target)
        plan = space.start
        for action in space.actions(plan):
            if space.traits(action).legality == "E":
                plan = space.apply(plan, action)
        first = next(action for action in space.actions(plan) if space.traits(action).tried_first)
        assert first.technique == "operate" and not space.actions(space.apply(plan, first)), "and what is left for other sizes stays as it is"
