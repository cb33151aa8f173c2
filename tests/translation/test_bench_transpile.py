"""The benchmark: what an item needs, the verdicts on right, wrong, crashing and cheating candidates, means over all, and the verb."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from warpwright import cli
from warpwright.errors import UsageError
from warpwright.llm.chat import prompt_digest
from warpwright.llm.recorded import Replay
from warpwright.translation import bench, report, translators
from warpwright.translation.c_source import parameters, stored_to
from warpwright.translation.items import Buffer, Item
from warpwright.translation.judge import variants
from warpwright.translation.judge.build import Translation
from warpwright.translation.judge.judge import Row, control, judge
from warpwright.translation.judge.prepare import Prepared, prepare
from warpwright.translation.launch import Launch
from warpwright.translation.suites import hpctranseval, kernelbench_c
from warpwright.translation.wiring.wire import wire

C = """void f(float* out, float* x, float* w) {
  #pragma omp parallel for
  for (int32_t i = 0; i < 5000; ++i) { out[i] = (expf(x[i]) * w[0]); }
}
"""
CUDA = """extern "C" __global__ void __launch_bounds__(128) f_kernel(float* __restrict__ out, float* __restrict__ x, float* __restrict__ w) {
  int i = ((int)blockIdx.x) * 128 + ((int)threadIdx.x);
  if (i < 5000) { out[i] = (__expf(x[i]) * w[0]); }
}
"""
BUFFERS = (Buffer("out", "float32", 5000, "output"), Buffer("x", "float32", 5000, "input"), Buffer("w", "float32", 1, "input"))
ITEM = Item("f", "test", "elementwise", CUDA, C, "f", BUFFERS, {}, (Launch("f_kernel", (40, 1, 1), (128, 1, 1), ("out", "x", "w")),))

CANDIDATES = {
    "ok": C.replace("int32_t", "int"),
    "wrong": C.replace("expf(x[i])", "x[i]"),
    "crashed": C.replace("out[i] =", "((float*)0)[i] ="),
    "not_built": C.replace("expf", "no_such_function(").replace("5000", ""),
    "timeout": C.replace("for (int32_t i = 0; i < 5000; ++i)", "for (volatile int i = 0; i < 5000; i = i)").replace("#pragma omp parallel for", ""),
}


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    made = prepare(ITEM)
    assert not made.unscored and made.oracle == "float64" and len(made.examples) == 6
    return made


@pytest.mark.compiler
@pytest.mark.parametrize("status", CANDIDATES)
def test_what_becomes_of_a_candidate_is_data(prepared: Prepared, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpwright.translation.judge.program.Program.call.__defaults__", (1, 2.0))
    row = judge(prepared, Translation("model", CANDIDATES[status]), 0.0, Random(0))
    assert row.status == status, row.reason
    assert row.built == (status != "not_built") and row.counted == 1.0


@pytest.mark.compiler
@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("i < 5000", "i < 5001", "wrote"),
        ("out[i] =", "x[i] = out[i] =", "changed its input x"),
        ("i < 5000", "i < 4999", "off by"),
        ("expf(x[i])", "(x[i] > 1.0f ? 2.0f : expf(x[i]))", "range"),
    ],
)
def test_out_of_bounds_gaps_and_narrow_programs_are_wrong(prepared: Prepared, old: str, new: str, reason: str) -> None:
    row = judge(prepared, Translation("model", C.replace(old, new)), 0.0, Random(0))
    assert row.status == "wrong" and reason in row.reason


@pytest.mark.compiler
def test_cpp_answers_are_built_too(prepared: Prepared) -> None:
    code = '#include <cmath>\nextern "C" ' + C.replace("expf(x[i])", "std::exp(x[i])").replace("float* out", "float* __restrict__ out")
    assert judge(prepared, Translation("model", code), 0.0, Random(0)).status == "ok"


@pytest.mark.compiler
def test_the_control_is_one(prepared: Prepared) -> None:
    """The original against itself: one run errs in less than 5 %, three of three once in 8,000 times."""
    rows = [control(prepared, 0.5, Random(seed)) for seed in range(3)]
    assert all(row.status == "ok" for row in rows)
    assert any(row.verdict != "FASTER" and row.interval[0] <= 1.03 and row.interval[1] >= 0.97 for row in rows), rows


@pytest.mark.compiler
def test_a_slower_program_is_seen_as_slower(prepared: Prepared) -> None:
    slow = C.replace("out[i] = (expf(x[i])", "float s = 0; for (volatile int k = 0; k < 40; ++k) s = expf(x[i]); out[i] = (s")
    assert judge(prepared, Translation("model", slow), 1.0, Random(0)).speedup < 0.5


def row_of(item: str, status: Any, speedup: float = 0.0, source: str = "model") -> Row:
    return Row(item, "family", source, status, "", status != "not_built", status == "ok", speedup, (speedup, speedup), None, 1e-5)


def test_failures_count_in_every_mean() -> None:
    rows = [row_of("a", "ok", 4.0), row_of("b", "wrong"), row_of("c", "not_built"), row_of("d", "timeout"), row_of("e", "unscored")]
    found = report.summary(rows, {})
    assert found["scored"] == 4 and found["correct"] == 1 and found["geomean_of_all"] == pytest.approx(4 ** (1 / 4))
    assert found["median_of_correct"] == 4.0


@pytest.mark.parametrize(("control", "valid"), [(1.01, True), (0.98, True), (1.05, False), (0.9, False)])
def test_a_control_off_by_more_than_three_percent_voids_the_run(control: float, valid: bool) -> None:
    said = report.as_json("s", [row_of("a", "ok", control, "control"), row_of("a", "ok", 2.0)], {})
    assert said["valid"] is valid
    assert ("Void" in report.markdown(said)) is not valid


# --- loading ---------------------------------------------------------------------------------------------------------------------------


def test_roles_come_from_stores() -> None:
    assert parameters(C, "f") == [("out", "float32"), ("x", "float32"), ("w", "float32")]
    assert stored_to(C, ["out", "x", "w"]) == {"out"}
    assert stored_to("if (x[i] == y[i]) z[a[0]] += 1; atomicAdd((&(h[i])), 1);", list("xyzah")) == {"z", "h"}
    with pytest.raises(UsageError, match="pointers"):
        parameters("void f(int n, float* x)", "f")


TWO = """extern "C" __global__ void __launch_bounds__(64) default_function_kernel_1(float* __restrict__ compute, float* __restrict__ compute_1) {
  compute[((((int)blockIdx.x) * 64) + ((int)threadIdx.x))] = tanhf(compute_1[((((int)blockIdx.x) * 64) + ((int)threadIdx.x))]);
}
extern "C" __global__ void __launch_bounds__(64) default_function_kernel(float* __restrict__ compute, float* __restrict__ ph_0) {
  if (((((int)blockIdx.x) * 64) + ((int)threadIdx.x)) < 1472) {
    compute[((((int)blockIdx.x) * 64) + ((int)threadIdx.x))] = __expf(ph_0[((((int)blockIdx.x) * 64) + ((int)threadIdx.x))]);
  }
}
"""
ROW = {
    "op_name": "topology_expansion",
    "op_args": [["exp", "tanh"]],
    "input_shape": [[64, 23]],
    "output_shape": [[64, 23]],
    "cuda_code": TWO,
    "c_code": "void default_function_kernel(float* compute, float* ph_0) {\n  for (int32_t i = 0; i < 1472; ++i) {\n"
    "    compute[i] = tanhf(expf(ph_0[i]));\n  }\n}\n",
}


@pytest.mark.compiler
def test_hpctranseval_is_read_and_wired(tmp_path: Path) -> None:
    (tmp_path / "ComputationGraph.json").write_text(json.dumps([ROW]))
    (item,) = hpctranseval.load(tmp_path)
    assert [(b.name, b.size, b.role) for b in item.buffers] == [("compute", 1472, "output"), ("ph_0", 1472, "input")]
    wired = wire(prepare(item))
    assert not wired.unwired
    assert [(x.kernel, x.grid[0]) for x in wired.launches] == [("default_function_kernel", 23), ("default_function_kernel_1", 23)]
    assert list(wired.temporaries.values()) == [("float32", 1472)]


@pytest.mark.compiler
def test_a_kernel_without_a_guard_gets_room_and_the_answers_are_right() -> None:
    text = TWO.replace("  if (((((int)blockIdx.x) * 64) + ((int)threadIdx.x)) < 1472) {\n", "  {\n")
    odd = ROW | {"cuda_code": text, "input_shape": [[1459]], "output_shape": [[1459]], "c_code": str(ROW["c_code"]).replace("1472", "1459")}
    wired = wire(prepare(hpctranseval.item(odd, "odd", "graphs")))
    assert not wired.unwired
    assert dict(wired.padded) == {"compute": 1472, "ph_0": 1472}


@pytest.mark.compiler
def test_an_input_may_go_by_the_name_of_another() -> None:
    """Each kernel names its parameters anew: the second kernel's ph_0 is the second input."""
    kernel = 'extern "C" __global__ void __launch_bounds__(64) default_function_kernel'
    index = "((((int)blockIdx.x) * 64) + ((int)threadIdx.x))"
    cuda = (
        f"{kernel}(float* __restrict__ T_exp, float* __restrict__ ph_0) {{\n  T_exp[{index}] = __expf(ph_0[{index}]);\n}}\n"
        f"{kernel}_1(float* __restrict__ T_add, float* __restrict__ T_exp, float* __restrict__ ph_0) {{\n"
        f"  T_add[{index}] = T_exp[{index}] + 3.0f * ph_0[{index}];\n}}\n"
    )
    c = (
        "void default_function_kernel(float* T_add, float* ph_0, float* ph_1) {\n  for (int32_t i = 0; i < 1472; ++i) {\n"
        "    T_add[i] = expf(ph_0[i]) + 3.0f * ph_1[i];\n  }\n}\n"
    )
    item = hpctranseval.item(ROW | {"cuda_code": cuda, "c_code": c, "input_shape": [[64, 23], [64, 23]]}, "two", "graphs")
    wired = wire(prepare(item))
    assert not wired.unwired
    assert [launch.args for launch in wired.launches][1][2] == "ph_1"


@pytest.mark.compiler
def test_an_item_that_cannot_be_wired_says_why() -> None:
    lost = ROW | {"cuda_code": TWO.replace("ph_0", "other").replace("compute_1", "other_1")}
    item = hpctranseval.item({**lost, "input_shape": [[64, 23], [64, 23]]}, "lost", "graphs")
    assert "could be what default_function_kernel stores" in wire(Prepared(item, Path())).unwired
    assert "no grid covers" in wire(Prepared(replace(item, cuda=TWO.replace("< 1472", "< 72")), Path())).unwired


def test_wrong_files_say_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="IndependentOperator"):
        hpctranseval.load(tmp_path)
    (tmp_path / "IndependentOperator.json").write_text("[{}]")
    with pytest.raises(UsageError, match="op_name"):
        hpctranseval.load(tmp_path)
    with pytest.raises(UsageError, match="level1"):
        kernelbench_c.files_of(tmp_path)


@pytest.mark.compiler
def test_kernelbench_c_claims_translation_only(tmp_path: Path) -> None:
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "1_Scale.cu").write_text("__global__ void s(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }")
    (tmp_path / "level1" / "2_None.cu").write_text("#include <torch/extension.h>\n")
    first, second = kernelbench_c.run(tmp_path, "", None, 1)
    assert (first.status, first.built) == ("unscored", True) and first.speedup == 0.0
    assert (second.status, second.built) == ("unscored", False) and "no kernel" in second.reason


def test_the_oracle_is_the_reference_in_double() -> None:
    assert "#define expf exp" in variants.in_double(C)
    assert variants.in_double(C.replace("expf(x[i])", "*(int*)&x[i]")) == ""
    assert variants.in_double(C.replace("expf(x[i])", "*(float *)(&(v_))")) == ""


# --- models ----------------------------------------------------------------------------------------------------------------------------


def test_code_is_taken_out_of_an_answer() -> None:
    answer = f"Here:\n```c\nint helper;\n```\nand\n```c\n{C}```\nDone."
    assert translators.code_of(answer, "f") == C
    assert translators.code_of(C, "f") == C


def replay(tmp_path: Path, item: Item, answer: str, start: str = "") -> Replay:
    key = prompt_digest("model", translators.prompt(item, start))
    (tmp_path / "replay.jsonl").write_text(json.dumps({"prompt": key, "model": "model", "answer": answer}) + "\n")
    return Replay(tmp_path / "replay.jsonl")


@pytest.mark.compiler
def test_a_replayed_model_stands_beside_the_compiler(tmp_path: Path) -> None:
    said = bench.run("test", [ITEM], [replay(tmp_path, ITEM, f"```c\n{C}```")], bench.Settings(seconds=0.0))
    assert {row["source"]: row["status"] for row in said["rows"]} == {"control": "ok", "compiler": "ok", "model": "ok"}
    assert "| model | 1 | 1 | 1 |" in report.markdown(said)


@pytest.mark.compiler
def test_refining_starts_from_the_compilers_output(tmp_path: Path) -> None:
    start = translators.compile_item(ITEM).code
    chat = replay(tmp_path, ITEM, f"```c\n{CANDIDATES['wrong']}```", start)
    settings = bench.Settings(seconds=0.0, refine=True)
    item, answers = bench.make_ready(ITEM, [chat], settings)
    rows = bench.judge_item(item, answers, settings)
    assert [(row.source, row.status) for row in rows] == [("control", "ok"), ("compiler", "ok"), ("model+compiler", "wrong")]


def test_no_answer_is_a_failure() -> None:
    class Silent:
        name = "silent"

        def ask(self, messages: Any) -> str:
            from warpwright.errors import ChatError

            raise ChatError("expected an answer, saw none")

    answer = translators.ask(Silent(), ITEM)
    assert answer.failure.startswith("no answer")


@pytest.mark.compiler
def test_the_verb(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ComputationGraph.json").write_text(json.dumps([ROW]))
    words = ["bench-transpile", "--suite", "hpctranseval", str(tmp_path), "--compiler", "--seconds", "0", "--json"]
    assert cli.main(words) == 0
    said = json.loads(capfd.readouterr().out)
    assert said["sources"]["compiler"]["correct"] == 1
    assert cli.main(["bench-transpile", "--suite", "hpctranseval", str(tmp_path), "--json"]) == 2
    assert "--compiler" in json.loads(capfd.readouterr().out)["error"]
    assert cli.main(["bench-transpile", "--suite", "other", str(tmp_path), "--compiler", "--json"]) == 2
    assert "hpctranseval" in json.loads(capfd.readouterr().out)["error"]
