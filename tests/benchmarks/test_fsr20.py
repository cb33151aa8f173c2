"""The suite of twenty kernels: complete, described, and right at its edges."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.cuda import plain20
from benchmarks.fsr20 import edges, run, summary
from warpwright.domains.cuda import taskfile, unit


def test_there_are_twenty_and_each_says_what_it_is() -> None:
    assert len({kernel.name for kernel in run.KERNELS}) == len(run.KERNELS) == 20
    for kernel in run.KERNELS:
        text = kernel.task_text("cuda")
        assert len(taskfile.statement(text)) > 10 and kernel.edges and kernel.values[0] == "nominal"
        assert len(unit.entries(kernel.cuda)) == 1, "one host function"


@pytest.mark.parametrize("kernel", run.KERNELS, ids=lambda kernel: kernel.name)
def test_a_reference_takes_every_edge(kernel: run.Kernel) -> None:
    for n, m in kernel.edges:
        task = edges.namespace(kernel, n, m)
        for kind in kernel.values if (n, m) == kernel.edges[-1] else ("nominal",):
            wanted = task["reference"](*[x.double() if x.is_floating_point() else x for x in edges.changed(task["get_inputs"](), kind)])
            assert bool(torch.isfinite(wanted.double()).all()), (n, m, kind)


@pytest.mark.slow
@pytest.mark.compiler
def test_naive_kernels_are_right_at_their_edges() -> None:
    pytest.importorskip("clang")
    rows = list(run.at_the_edges(run.KERNELS))
    assert len(rows) > 200 and not [row for row in rows if not row["ok"]]


@pytest.mark.slow
@pytest.mark.compiler
def test_a_wrong_kernel_is_found_at_an_edge() -> None:
    pytest.importorskip("clang")
    [relu] = [kernel for kernel in run.KERNELS if kernel.name == "relu"]
    wrong = replace(relu, cuda=relu.cuda.replace("if (i < n)", "if (i < n - n % 2)"))
    assert [row["n"] for row in run.at_the_edges([wrong]) if not row["ok"]][:2] == [1, 3]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_naive_kernels_compile_for_hopper() -> None:
    assert run.compiled(run.KERNELS).count("Compiling entry function") == 25


def test_a_recipe_loses_what_has_become_its_templates_default() -> None:
    assert plain20.as_listed(['operate(sort_values, template="radix_sort", SORT_THREADS=512)']) == ['operate(sort_values, template="radix_sort")']
    other = ["restrict(k)", 'operate(sort_values, template="radix_sort", SORT_THREADS=256)', "cooperate(k, threads=32)"]
    assert plain20.as_listed(other) == other


def test_the_timers_counts_are_beside_the_librarys_own_call_where_there_is_one() -> None:
    def row(name: str, side: str, speedup: float, verdict: str) -> dict[str, object]:
        interval = [speedup - 0.01, speedup + 0.01]
        return {"table": "timed", "task": name, "side": side, "speedup": speedup, "interval": interval, "verdict": verdict, "recipe": []}

    naive = [row("sort", "naive", 8.0, "FASTER"), row("relu", "naive", 2.0, "FASTER")]
    beside = [row("sort", "torch", 2.0, "FASTER"), row("sort", "vendor", 0.97, "SLOWER"), row("relu", "torch", 1.0, "SAME")]
    made = summary.timed_headline([naive, beside, [{"table": "timed", "task": "dot", "failure": "no such call"}]])
    assert (made["kernels"], made["geometric mean"], made["best"], made["least beside it"]) == (2, 4.0, 8.0, 0.96)
    assert [made[f"{verdict} beside the vendor's call"] for verdict in ("FASTER", "SAME", "SLOWER")] == [0, 1, 1]


def test_the_summary_follows_from_what_is_in_the_repository(tmp_path: Path) -> None:
    suite, results = Path(run.__file__).parent, Path(run.__file__).parents[1] / "results/fsr20_h200/rows.jsonl"
    ran = [str(file) for file in (suite / "second.jsonl", suite / "third.jsonl") if file.exists()]
    summary.main([*ran, "--first", str(suite / "first.jsonl"), "--kept", str(results), "--out", str(tmp_path)])
    assert (tmp_path / "rows.jsonl").read_text() == results.read_text()


def test_what_an_earlier_summary_has_stands_where_no_run_says_it_and_for_the_same_recipe_only() -> None:
    kept = [{"table": "kernels", "kernel": "relu", "verifier": "ok", "over naive": "FASTER 2.00 [1.90, 2.10]", "recipe": "a(k)"}]
    line = {"table": "kernels", "kernel": "relu", "verifier": "-", "timer": "-", "recipe": "a(k)"}
    assert summary.with_kept(line, kept) == kept[0]
    assert summary.with_kept({**line, "verifier": "wrong"}, kept)["verifier"] == "wrong", "a later run counts, whatever it says"
    assert summary.with_kept({**line, "recipe": "b(k)"}, kept)["verifier"] == "-"
